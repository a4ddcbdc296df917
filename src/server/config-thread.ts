// The thread that loads a configuration and ends: the only place where the schema and the extensions' checks meet.

import { runLoaderThread } from '../config/loader-thread.js';
import { EXTENSIONS } from '../extensions/index.js';

runLoaderThread(EXTENSIONS);
