// Entry file of a loading thread with the tests' catalog.

import { runLoaderThread } from '../../src/config/load/loader-thread.js';
import { TEST_EXTENSIONS } from './catalog.js';

runLoaderThread(TEST_EXTENSIONS);
