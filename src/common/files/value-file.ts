// Files with one value that scripts read: of --base-id-path and --admin-address-path.

import { closeSync, constants, openSync, writeFileSync } from 'node:fs';

const { O_CREAT, O_NONBLOCK, O_TRUNC, O_WRONLY } = constants;

/** Replaces the content of the file. Throws an Error when it cannot be written, such as a named pipe that nobody reads. */
export function writeValueFile(path: string, text: string): void {
  // Opening a pipe waits for a reader otherwise.
  const descriptor = openSync(path, O_WRONLY | O_CREAT | O_TRUNC | O_NONBLOCK);
  try {
    writeFileSync(descriptor, text);
  } finally {
    closeSync(descriptor);
  }
}
