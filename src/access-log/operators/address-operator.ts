// %…_ADDRESS%, %…_ADDRESS_WITHOUT_PORT% and %…_PORT%: parts of `127.0.0.1:80`, `[::1]:80` or a path.

import type { LogBuffer } from '../log-buffer.js';
import type { StreamInfo } from '../stream/stream-info.js';
import type { Operator } from './operator.js';

export type AddressPart = 'host' | 'port';

export class AddressOperator implements Operator {
  readonly isNumber: boolean;
  readonly #get: (info: StreamInfo) => string;
  readonly #part: AddressPart;

  constructor(get: (info: StreamInfo) => string, part: AddressPart) {
    this.#get = get;
    this.#part = part;
    this.isNumber = part === 'port';
  }

  write(info: StreamInfo, out: LogBuffer): boolean {
    const address = this.#get(info);
    if (address === '') return false;
    // Unix sockets (paths and abstract names) have no port.
    const isIp = address[0] !== '/' && address[0] !== '@';
    const colon = isIp ? address.lastIndexOf(':') : -1;
    if (this.#part === 'port') {
      if (colon < 0) return false;
      out.text(address, colon + 1);
    } else if (colon < 0) {
      out.text(address);
    } else if (address[0] === '[') {
      out.text(address, 1, colon - 1);
    } else {
      out.text(address, 0, colon);
    }
    return true;
  }
}
