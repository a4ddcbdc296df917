// The thread that loads a configuration and ends: the only place where the schema and the extensions' checks meet.

import { runLoaderThread } from '../../config/load/loader-thread.js';
import { EXTENSIONS } from '../../extensions/index.js';
import { CONFIGURATION_CHECKS } from './configuration-checks.js';

runLoaderThread(EXTENSIONS, CONFIGURATION_CHECKS);
