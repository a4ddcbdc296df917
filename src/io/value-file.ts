// Files with one value for scripts: those of --base-id-path and --admin-address-path.

import { writeSync } from 'node:fs';
import { standardStream } from '../common/files/standard-streams.js';
import { loadShim } from './shim.js';

/**
 * Replaces the content of the file atomically. Throws an Error if it cannot be written, such as a named pipe without a reader, or if it is
 * behind a link that another user may have created.
 */
export function writeValueFile(path: string, text: string): void {
  const standard = standardStream(path);
  if (standard === undefined) loadShim().replaceFile(path, Buffer.from(text));
  else writeSync(standard, text);
}
