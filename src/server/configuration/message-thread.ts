// The short-lived thread that checks one message.

import { runMessageThread } from '../../config/load/message-thread.js';
import { EXTENSIONS } from '../../extensions/index.js';

runMessageThread(EXTENSIONS);
