// Finds a virtual host by the authority of a request: an exact name, otherwise the longest suffix, otherwise the longest prefix.
//
// Names are hashed case-folded and byte by byte, forwards for exact names and prefixes, backwards for suffixes. One pass over the authority
// yields the hash of every prefix or suffix, without creating a string.

import { FOLD } from '../../../common/text/header-names.js';

export class DomainTable<T> {
  readonly #exact = new KeyTable<T>(false);
  /** `*.foo.com` as `.foo.com`, hashed backwards. */
  readonly #suffixes = new KeyTable<T>(true);
  /** `foo.*` as `foo.`. */
  readonly #prefixes = new KeyTable<T>(false);
  #any: T | undefined;
  #hasNames = false;

  /** Adds a name, `*suffix`, `prefix*` or `*`. Returns false if it exists already. */
  add(domain: string, value: T): boolean {
    if (domain === '*') {
      if (this.#any !== undefined) return false;
      this.#any = value;
      return true;
    }
    this.#hasNames = true;
    if (domain.startsWith('*')) return this.#suffixes.add(domain.slice(1), value);
    if (domain.endsWith('*')) return this.#prefixes.add(domain.slice(0, -1), value);
    return this.#exact.add(domain, value);
  }

  /** The table has at most `*`, so the authority does not matter. */
  get isCatchAll(): boolean {
    return !this.#hasNames;
  }

  /** The value of `*`. */
  get catchAll(): T | undefined {
    return this.#any;
  }

  /** Returns the value for the authority in bytes[start, end), in Envoy's order of precedence. */
  find(bytes: Uint8Array, start: number, end: number): T | undefined {
    const prefixes = this.#prefixes;
    let prefix = NONE;
    let hash = SEED;
    if (prefixes.longest === 0) {
      for (let at = start; at < end; at++) hash = Math.imul(hash ^ FOLD[bytes[at]!]!, PRIME);
    } else {
      // A wildcard matches at least one byte, so the whole authority is not a candidate.
      for (let at = start; at < end; at++) {
        const length = at - start;
        if (length <= prefixes.longest && prefixes.hasLength(length)) {
          const hit = prefixes.find(hash, bytes, start, at);
          if (hit !== NONE) prefix = hit;
        }
        hash = Math.imul(hash ^ FOLD[bytes[at]!]!, PRIME);
      }
    }
    const exact = this.#exact.find(hash, bytes, start, end);
    if (exact !== NONE) return this.#exact.values[exact];
    if (this.#suffixes.longest > 0) {
      const suffix = this.#findSuffix(bytes, start, end);
      if (suffix !== NONE) return this.#suffixes.values[suffix];
    }
    return prefix !== NONE ? prefixes.values[prefix] : this.#any;
  }

  #findSuffix(bytes: Uint8Array, start: number, end: number): number {
    const suffixes = this.#suffixes;
    const last = Math.max(start + 1, end - suffixes.longest);
    let hash = SEED;
    let found = NONE;
    for (let at = end - 1; at >= last; at--) {
      hash = Math.imul(hash ^ FOLD[bytes[at]!]!, PRIME);
      if (suffixes.hasLength(end - at)) {
        const hit = suffixes.find(hash, bytes, at, end);
        if (hit !== NONE) found = hit;
      }
    }
    return found;
  }
}

const NONE = -1;
/** FNV-1a; spread() mixes in the upper bits. */
const SEED = 0x811c9dc5 | 0;
const PRIME = 0x01000193;

const encoder = new TextEncoder();

/** A map of byte strings with open addressing, at most half full. */
class KeyTable<T> {
  readonly values: T[] = [];
  /** Length of the longest key in bytes; 0 if there is none. */
  longest = 0;

  readonly #isBackwards: boolean;
  /** Concatenated keys: key i is #bytes[#ends[i], #ends[i + 1]). */
  #bytes = new Uint8Array(256);
  readonly #ends: number[] = [0];
  #lengths = new Uint8Array(1);
  /** Pairs of a key's index plus 1 (0 for a free slot) and the key's hash. */
  #slots = new Int32Array(16);
  #mask = 7;

  constructor(isBackwards: boolean) {
    this.#isBackwards = isBackwards;
  }

  add(name: string, value: T): boolean {
    const index = this.values.length;
    const start = this.#ends[index]!;
    const end = this.#write(name.toLowerCase(), start);
    const hash = this.#hash(start, end);
    if (this.find(hash, this.#bytes, start, end) !== NONE) return false;
    this.#ends.push(end);
    this.values.push(value);
    const length = end - start;
    if (length > this.longest) {
      this.longest = length;
      const lengths = new Uint8Array(length + 1);
      lengths.set(this.#lengths);
      this.#lengths = lengths;
    }
    this.#lengths[length] = 1;
    if ((index + 1) * 2 > this.#mask + 1) this.#grow();
    this.#place(index + 1, hash);
    return true;
  }

  /** Returns whether a key of this length exists, for `length` up to `longest`. */
  hasLength(length: number): boolean {
    return this.#lengths[length] === 1;
  }

  /** Returns the index of the key that equals bytes[start, end) case-insensitively, or NONE. */
  find(hash: number, bytes: Uint8Array, start: number, end: number): number {
    const length = end - start;
    const keys = this.#bytes;
    for (let slot = spread(hash) & this.#mask; ; slot = (slot + 1) & this.#mask) {
      const index = this.#slots[slot * 2]! - 1;
      if (index < 0) return NONE;
      if (this.#slots[slot * 2 + 1] !== hash) continue;
      const key = this.#ends[index]!;
      if (this.#ends[index + 1]! - key !== length) continue;
      let at = 0;
      while (at < length && FOLD[bytes[start + at]!] === keys[key + at]) at++;
      if (at === length) return index;
    }
  }

  /** Writes a key after the last one. Returns the offset after it. */
  #write(key: string, start: number): number {
    const most = start + 3 * key.length;
    if (most > this.#bytes.length) {
      const bytes = new Uint8Array(Math.max(most, 2 * this.#bytes.length));
      bytes.set(this.#bytes);
      this.#bytes = bytes;
    }
    for (let at = 0; at < key.length; at++) {
      const code = key.charCodeAt(at);
      if (code > 127) return start + encoder.encodeInto(key, this.#bytes.subarray(start)).written;
      this.#bytes[start + at] = code;
    }
    return start + key.length;
  }

  #hash(start: number, end: number): number {
    const bytes = this.#bytes;
    let hash = SEED;
    if (this.#isBackwards) for (let at = end - 1; at >= start; at--) hash = Math.imul(hash ^ bytes[at]!, PRIME);
    else for (let at = start; at < end; at++) hash = Math.imul(hash ^ bytes[at]!, PRIME);
    return hash;
  }

  #grow(): void {
    const former = this.#slots;
    this.#mask = this.#mask * 2 + 1;
    this.#slots = new Int32Array((this.#mask + 1) * 2);
    for (let at = 0; at < former.length; at += 2) if (former[at] !== 0) this.#place(former[at]!, former[at + 1]!);
  }

  #place(key: number, hash: number): void {
    let slot = spread(hash) & this.#mask;
    while (this.#slots[slot * 2] !== 0) slot = (slot + 1) & this.#mask;
    this.#slots[slot * 2] = key;
    this.#slots[slot * 2 + 1] = hash;
  }
}

function spread(hash: number): number {
  return hash ^ (hash >>> 15);
}
