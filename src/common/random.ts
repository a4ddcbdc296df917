// Pseudo-random numbers for choices that need no secrecy: load balancing, jitter, sampling, request ids.
//
// xoshiro128** (Blackman and Vigna): 128 bits of state, a few integer operations per number, no allocation. Seeded from the
// system's generator; tests pass a seed for repeatable numbers.

import { randomFillSync } from 'node:crypto';

export class Random {
  #a = 0;
  #b = 0;
  #c = 0;
  #d = 0;

  /** `seed`: any integer, or 4 words of state, for repeatable numbers; default: 128 bits from the operating system. */
  constructor(seed?: number | Int32Array) {
    const words = typeof seed === 'number' ? expandSeed(seed) : (seed ?? randomFillSync(new Int32Array(4)));
    this.#a = words[0]!;
    this.#b = words[1]!;
    this.#c = words[2]!;
    // The generator never leaves the state of all zeros.
    this.#d = words[0] === 0 && words[1] === 0 && words[2] === 0 ? words[3]! | 1 : words[3]!;
  }

  /** Returns 32 random bits as a signed integer: the cheapest form, for callers that extract bits. */
  nextInt32(): number {
    const scrambled = Math.imul(this.#b, 5);
    const result = Math.imul((scrambled << 7) | (scrambled >>> 25), 9);
    const shifted = this.#b << 9;
    this.#c ^= this.#a;
    this.#d ^= this.#b;
    this.#b ^= this.#c;
    this.#a ^= this.#d;
    this.#c ^= shifted;
    this.#d = (this.#d << 11) | (this.#d >>> 21);
    return result;
  }

  /** Returns an integer from 0 to 2^32 - 1. */
  nextUint32(): number {
    return this.nextInt32() >>> 0;
  }

  /** Returns an integer from 0 to n - 1, for 1 ≤ n ≤ 2^32; the bias is below n / 2^32. */
  below(n: number): number {
    return Math.floor((this.nextInt32() >>> 0) * TWO_TO_MINUS_32 * n);
  }

  /** Returns a number in [0, 1), in steps of 2^-32. */
  fraction(): number {
    return (this.nextInt32() >>> 0) * TWO_TO_MINUS_32;
  }
}

const TWO_TO_MINUS_32 = 2 ** -32;

/** Expands a seed with SplitMix32: neighbouring seeds give unrelated states. */
function expandSeed(seed: number): Int32Array {
  const words = new Int32Array(4);
  let state = seed | 0;
  for (let i = 0; i < 4; i++) {
    state = (state + 0x9e3779b9) | 0;
    let word = Math.imul(state ^ (state >>> 16), 0x21f0aaad);
    word = Math.imul(word ^ (word >>> 15), 0x735a2d97);
    words[i] = word ^ (word >>> 15);
  }
  return words;
}
