// Ranges of IP addresses: a prefix and the number of its significant bits.

import { formatIp, parseIp } from './address.js';

export interface IpRange {
  /** 4 or 16 bytes; insignificant bits are 0. */
  readonly prefix: Uint8Array;
  /** At most 32 or 128. */
  readonly bits: number;
}

/** Returns a range; undefined if `prefix` is not an IP address. As in Envoy, `bits` is capped at the length of the address. */
export function ipRange(prefix: string, bits: number): IpRange | undefined {
  const bytes = parseIp(prefix);
  if (bytes === undefined) return undefined;
  const count = Math.min(bits, bytes.length * 8);
  return { prefix: masked(bytes, count), bits: count };
}

/** Returns text such as `10.0.0.0/8`, which is equal for equal ranges. */
export function rangeText({ prefix, bits }: IpRange): string {
  return `${formatIp(prefix)}/${bits}`;
}

/** Returns whether the address (4 or 16 bytes) is in the range. */
export function isInRange({ prefix, bits }: IpRange, address: Uint8Array): boolean {
  if (address.length !== prefix.length) return false;
  const whole = bits >> 3;
  for (let i = 0; i < whole; i++) if (address[i] !== prefix[i]) return false;
  const rest = bits & 7;
  return rest === 0 || address[whole]! >> (8 - rest) === prefix[whole]! >> (8 - rest);
}

/** Maps ranges to values. The narrowest range that contains an address decides. */
export class RangeTable<T> {
  /** Keyed by the length of addresses in bytes; the narrowest ranges come first. */
  readonly #levels: { [bytes: number]: { readonly bits: number; readonly values: Map<string, T> }[] } = {};

  constructor(entries: Iterable<readonly [IpRange, T]>) {
    for (const [{ prefix, bits }, value] of entries) {
      this.#levels[prefix.length] ??= [];
      const levels = this.#levels[prefix.length]!;
      let level = levels.find((each) => each.bits === bits);
      if (level === undefined) levels.push((level = { bits, values: new Map() }));
      level.values.set(keyOf(prefix), value);
    }
    for (const levels of Object.values(this.#levels)) levels.sort((one, other) => other.bits - one.bits);
  }

  /** Returns the value for an address of 4 or 16 bytes; undefined if no range contains it. */
  find(address: Uint8Array): T | undefined {
    for (const { bits, values } of this.#levels[address.length] ?? []) {
      const value = values.get(keyOf(masked(address, bits)));
      if (value !== undefined) return value;
    }
    return undefined;
  }

  /** Calls `found` with the values of all ranges that contain the address, the narrowest range first. */
  findAll(address: Uint8Array, found: (value: T) => void): void {
    for (const { bits, values } of this.#levels[address.length] ?? []) {
      const value = values.get(keyOf(masked(address, bits)));
      if (value !== undefined) found(value);
    }
  }
}

function masked(address: Uint8Array, bits: number): Uint8Array {
  const whole = bits >> 3;
  const bytes = new Uint8Array(address.length);
  bytes.set(address.subarray(0, whole));
  if (whole < address.length) bytes[whole] = address[whole]! & (0xff00 >> (bits & 7));
  return bytes;
}

function keyOf(address: Uint8Array): string {
  return String.fromCharCode(...address);
}
