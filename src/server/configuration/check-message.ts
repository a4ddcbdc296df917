// Checks a message that a client has sent, in a thread that ends afterwards: neither the schema nor YAML stays in memory.

import { programFile } from '../../common/package/package-root.js';
import { type CheckedMessage, checkInThread } from '../../config/load/check-in-thread.js';

const THREAD = programFile('server/configuration/message-thread.js');

/** Reads YAML or JSON as the message of that full name, with everything that is checked of a configuration. */
export function checkMessage(name: string, text: string): Promise<CheckedMessage> {
  return checkInThread(THREAD, { name, text });
}
