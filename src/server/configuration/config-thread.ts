// The short-lived thread that loads a configuration: the only place that combines the schema with the extensions' checks.

import { runLoaderThread } from '../../config/load/loader-thread.js';
import { EXTENSIONS } from '../../extensions/index.js';
import { CONFIGURATION_CHECKS } from './configuration-checks.js';

runLoaderThread(EXTENSIONS, CONFIGURATION_CHECKS);
