// The thread that checks one message and ends.

import { runMessageThread } from '../../config/load/message-thread.js';
import { EXTENSIONS } from '../../extensions/index.js';

runMessageThread(EXTENSIONS);
