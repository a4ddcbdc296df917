// %…_ADDRESS%, %…_ADDRESS_WITHOUT_PORT(BITS)% and %…_PORT%: parts of `127.0.0.1:80`, `[::1]:80` or a path.

import { isInternalText } from '../../io/addresses/address.js';
import { ipRange, rangeText } from '../../io/addresses/ip-range.js';
import type { LogBuffer } from '../log-buffer.js';
import type { StreamInfo } from '../stream/stream-info.js';
import type { Operator } from './operator.js';

export type AddressPart = 'host' | 'port';

export class AddressOperator implements Operator {
  readonly isNumber: boolean;
  readonly #get: (info: StreamInfo) => string;
  readonly #part: AddressPart;
  /** Significant bits of an IP address, which is then written as `10.0.0.0/8`; undefined: the whole address. */
  readonly #bits: number | undefined;

  constructor(get: (info: StreamInfo) => string, part: AddressPart, bits?: number) {
    this.#get = get;
    this.#part = part;
    this.#bits = bits;
    this.isNumber = part === 'port';
  }

  write(info: StreamInfo, out: LogBuffer): boolean {
    const address = this.#get(info);
    if (address === '') return false;
    if (this.#bits !== undefined) {
      const range = ipRange(hostOf(address), this.#bits);
      out.text(range === undefined ? hostOf(address) : rangeText(range));
      return true;
    }
    const colon = portMark(address);
    if (this.#part === 'port') {
      // As in Envoy, the port of an internal address is an empty text.
      if (colon < 0) return isInternalText(address);
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

/** Returns the address without port. */
export function hostOf(address: string): string {
  const colon = portMark(address);
  if (colon < 0) return address;
  return address[0] === '[' ? address.slice(1, colon - 1) : address.slice(0, colon);
}

/** Returns the index of the colon before the port; -1: Unix sockets (paths and abstract names) and internal listeners have no port. */
function portMark(address: string): number {
  const hasNone = address[0] === '/' || address[0] === '@' || isInternalText(address);
  return hasNone ? -1 : address.lastIndexOf(':');
}
