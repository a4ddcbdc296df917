// Fields of a message as modules read and change them. Names are in lower case, values have one character a byte.

import type { Result } from '../abi.js';
import type { Pairs } from '../vm/pairs.js';

export interface HeaderMap {
  /** Returns the first value; undefined: there is no such field. */
  get(name: string): string | undefined;
  pairs(): Pairs;
  /** Number of fields. */
  readonly size: number;
}

/** Fields that can be changed. Their methods return a Result: a field that cannot be sent is refused. */
export interface MutableHeaderMap extends HeaderMap {
  add(name: string, value: string): Result;
  replace(name: string, value: string): Result;
  remove(name: string): Result;
  setPairs(pairs: Pairs): Result;
}

/** Fields that were received, for reading only. */
export class ReceivedHeaders implements HeaderMap {
  readonly #pairs: Pairs;

  constructor(pairs: Pairs) {
    this.#pairs = pairs;
  }

  get size(): number {
    return this.#pairs.length;
  }

  get(name: string): string | undefined {
    return this.#pairs.find(([key]) => key === name)?.[1];
  }

  pairs(): Pairs {
    return this.#pairs;
  }
}

/** Returns the bytes of names and values, as Envoy counts them. */
export function byteSize(map: HeaderMap): number {
  return map.pairs().reduce((sum, [name, value]) => sum + name.length + value.length, 0);
}
