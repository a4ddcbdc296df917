// MurmurHash64A, the 64-bit hash of strings in GNU's C++ library (github.com/aappleby/smhasher, src/MurmurHash2.cpp).

import { int32, Word64 } from './xxh64.js';

/** Hashes bytes[start, end) into `hash`, with the seed of std::hash. */
export function murmurHash2(bytes: Uint8Array, start: number, end: number, hash: Word64): void {
  hash.set(0, end - start);
  hash.multiply(M_HI, M_LO);
  hash.xor(0, SEED);
  let at = start;
  for (; at + 8 <= end; at += 8) {
    lane.set(int32(bytes, at + 4), int32(bytes, at));
    lane.multiply(M_HI, M_LO);
    shiftMix(lane);
    lane.multiply(M_HI, M_LO);
    hash.xor(lane.hi, lane.lo);
    hash.multiply(M_HI, M_LO);
  }
  if (at < end) {
    lane.set(0, 0);
    for (let last = end - 1; last >= at; last--) {
      lane.set((lane.hi << 8) | (lane.lo >>> 24), (lane.lo << 8) | bytes[last]!);
    }
    hash.xor(lane.hi, lane.lo);
    hash.multiply(M_HI, M_LO);
  }
  shiftMix(hash);
  hash.multiply(M_HI, M_LO);
  shiftMix(hash);
}

/** word ^= word >> 47 */
function shiftMix(word: Word64): void {
  word.xor(0, word.hi >>> 15);
}

const M_HI = 0xc6a4a793 | 0;
const M_LO = 0x5bd1e995 | 0;
const SEED = 0xc70f6907 | 0;

const lane = new Word64();
