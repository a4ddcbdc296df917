// Checks a message from a client in a short-lived thread, so that neither the schema nor YAML stays in memory.

import { programFile } from '../../common/package/package-root.js';
import { type CheckedMessage, checkInThread } from '../../config/load/check-in-thread.js';

const THREAD = programFile('server/configuration/message-thread.js');

/** Parses YAML or JSON as the message with the full name `name`, and checks it like a configuration. */
export function checkMessage(name: string, text: string): Promise<CheckedMessage> {
  return checkInThread(THREAD, { name, text });
}
