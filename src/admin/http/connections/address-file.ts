// --admin-address-path: a file with the address of the admin interface, for scripts.

import { lstatSync, readFileSync, unlinkSync } from 'node:fs';
import { messageOf } from '../../../common/errors/errors.js';
import { type Address, addressText, parseAddress } from '../../../io/addresses/address.js';
import { writeValueFile } from '../../../io/value-file.js';
import { getLogger } from '../../../log/logger.js';

const logger = getLogger('admin');

/** Writes `127.0.0.1:9901` without a newline. If the file cannot be written, this is logged and the server continues. */
export function writeAddressFile(path: string, address: Address): void {
  try {
    writeValueFile(path, addressText(address));
  } catch (error) {
    logger.critical(`cannot open admin address output file ${path} for writing. ${messageOf(error)}`);
  }
}

/** More than the length of any address. */
const MAX_BYTES = 256;

/**
 * Removes the file of a killed process, whose address is no longer used. Removes only a file of this user that contains
 * nothing but an address. Never throws.
 */
export function removeAddressFile(path: string): void {
  try {
    const file = lstatSync(path);
    if (!file.isFile() || file.uid !== process.getuid!() || file.size > MAX_BYTES) return;
    if (parseAddress(readFileSync(path, 'utf8')) !== undefined) unlinkSync(path);
  } catch {
    // There is no file, or it cannot be removed and will be overwritten.
  }
}
