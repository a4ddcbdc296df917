// --admin-address-path: a file that tells scripts where the admin interface listens.

import { lstatSync, readFileSync, unlinkSync } from 'node:fs';
import { messageOf } from '../../../common/errors/errors.js';
import { type Address, addressText, parseAddress } from '../../../io/addresses/address.js';
import { writeValueFile } from '../../../io/value-file.js';
import { getLogger } from '../../../log/logger.js';

const logger = getLogger('admin');

/** Writes `127.0.0.1:9901`, without a newline. A file that cannot be written is logged, and the server goes on. */
export function writeAddressFile(path: string, address: Address): void {
  try {
    writeValueFile(path, addressText(address));
  } catch (error) {
    logger.critical(`cannot open admin address output file ${path} for writing. ${messageOf(error)}`);
  }
}

/** More than any address has. */
const MAX_BYTES = 256;

/**
 * Removes the file of a process that was killed: its address is nobody's any more. Only a file of this user that holds an address and
 * nothing else. Does not throw.
 */
export function removeAddressFile(path: string): void {
  try {
    const file = lstatSync(path);
    if (!file.isFile() || file.uid !== process.getuid!() || file.size > MAX_BYTES) return;
    if (parseAddress(readFileSync(path, 'utf8')) !== undefined) unlinkSync(path);
  } catch {
    // There is none, or it cannot be removed: it is overwritten.
  }
}
