// --admin-address-path: a file that tells scripts where the admin interface listens.

import { messageOf } from '../../../common/errors/errors.js';
import { type Address, addressText } from '../../../io/addresses/address.js';
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
