// Files with one value that scripts read: of --base-id-path and --admin-address-path.

import { writeSync } from 'node:fs';
import { standardStream } from '../common/files/standard-streams.js';
import { loadShim } from './shim.js';

/**
 * Replaces the content of the file at once, so that no reader sees a part of it. Throws an Error when it cannot be written, such as a
 * named pipe that nobody reads, or is behind a link that a stranger may have put there.
 */
export function writeValueFile(path: string, text: string): void {
  const standard = standardStream(path);
  if (standard === undefined) loadShim().replaceFile(path, Buffer.from(text));
  else writeSync(standard, text);
}
