// XXH64, the 64-bit hash that Envoy uses to choose hosts (github.com/Cyan4973/xxHash, doc/xxhash_spec.md).
//
// A 64-bit number is two halves, as signed integers. BigInts would be allocated per operation, and a WebAssembly library
// returns BigInts too and must be loaded first.

/** A 64-bit number. */
export class Word64 {
  hi = 0;
  lo = 0;

  set(hi: number, lo: number): void {
    this.hi = hi | 0;
    this.lo = lo | 0;
  }

  xor(hi: number, lo: number): void {
    this.hi ^= hi;
    this.lo ^= lo;
  }

  add(hi: number, lo: number): void {
    this.lo = (this.lo + lo) | 0;
    this.hi = (this.hi + hi + (this.lo >>> 0 < lo >>> 0 ? 1 : 0)) | 0;
  }

  multiply(hi: number, lo: number): void {
    const a0 = this.lo & 0xffff;
    const a1 = this.lo >>> 16;
    const b0 = lo & 0xffff;
    const b1 = lo >>> 16;
    // The upper half of lo times lo: none of these sums exceeds 32 bits.
    const middle = (Math.imul(a1, b0) + (Math.imul(a0, b0) >>> 16)) | 0;
    const other = (Math.imul(a0, b1) + (middle & 0xffff)) | 0;
    const upper = Math.imul(a1, b1) + (middle >>> 16) + (other >>> 16);
    this.hi = (upper + Math.imul(this.hi, lo) + Math.imul(this.lo, hi)) | 0;
    this.lo = Math.imul(this.lo, lo);
  }

  /** Rotates by 1 to 31 bits. */
  rotateLeft(bits: number): void {
    const { hi, lo } = this;
    this.hi = (hi << bits) | (lo >>> (32 - bits));
    this.lo = (lo << bits) | (hi >>> (32 - bits));
  }

  /** Returns the remainder of a division by up to 2^32. */
  modulo(divisor: number): number {
    // No intermediate result exceeds 2^48.
    const upper = ((this.hi >>> 0) % divisor) * 0x10000 + (this.lo >>> 16);
    return ((upper % divisor) * 0x10000 + (this.lo & 0xffff)) % divisor;
  }
}

/** Hashes bytes[start, end) into `hash`. The halves of the seed have 32 bits each. */
export function xxh64(bytes: Uint8Array, start: number, end: number, hash: Word64, seed = 0, seedHi = 0): void {
  let at = start;
  if (end - start >= 32) at = mixStripes(bytes, start, end, hash, seed, seedHi);
  else {
    hash.set(seedHi, seed);
    hash.add(P5_HI, P5_LO);
  }
  hash.add(0, end - start);
  for (; at + 8 <= end; at += 8) {
    lane.set(0, 0);
    mixRound(lane, bytes, at);
    hash.xor(lane.hi, lane.lo);
    hash.rotateLeft(27);
    hash.multiply(P1_HI, P1_LO);
    hash.add(P4_HI, P4_LO);
  }
  if (at + 4 <= end) {
    lane.set(0, int32(bytes, at));
    lane.multiply(P1_HI, P1_LO);
    hash.xor(lane.hi, lane.lo);
    hash.rotateLeft(23);
    hash.multiply(P2_HI, P2_LO);
    hash.add(P3_HI, P3_LO);
    at += 4;
  }
  for (; at < end; at++) {
    lane.set(0, bytes[at]!);
    lane.multiply(P5_HI, P5_LO);
    hash.xor(lane.hi, lane.lo);
    hash.rotateLeft(11);
    hash.multiply(P1_HI, P1_LO);
  }
  hash.xor(0, hash.hi >>> 1);
  hash.multiply(P2_HI, P2_LO);
  hash.xor(hash.hi >>> 29, (hash.lo >>> 29) | (hash.hi << 3));
  hash.multiply(P3_HI, P3_LO);
  hash.xor(0, hash.hi);
}

/** Hashes a text in which each character is one byte. */
export function xxh64Text(text: string, hash: Word64, seed = 0, seedHi = 0): void {
  const { length } = text;
  if (length > textBytes.length) textBytes = new Uint8Array(2 * length);
  for (let at = 0; at < length; at++) textBytes[at] = text.charCodeAt(at);
  xxh64(textBytes, 0, length, hash, seed, seedHi);
}

const P1_HI = 0x9e3779b1 | 0;
const P1_LO = 0x85ebca87 | 0;
const P2_HI = 0xc2b2ae3d | 0;
const P2_LO = 0x27d4eb4f | 0;
const P3_HI = 0x165667b1 | 0;
const P3_LO = 0x9e3779f9 | 0;
const P4_HI = 0x85ebca77 | 0;
const P4_LO = 0xc2b2ae63 | 0;
const P5_HI = 0x27d4eb2f | 0;
const P5_LO = 0x165667c5 | 0;

const lane = new Word64();
const stripe = [new Word64(), new Word64(), new Word64(), new Word64()] as const;
let textBytes = new Uint8Array(256);

/** Mixes all stripes of 32 bytes; returns where the rest begins. */
function mixStripes(bytes: Uint8Array, start: number, end: number, hash: Word64, seed: number, seedHi: number): number {
  for (const accumulator of stripe) accumulator.set(seedHi, seed);
  const [first, second, third, fourth] = stripe;
  first.add(P1_HI, P1_LO);
  first.add(P2_HI, P2_LO);
  second.add(P2_HI, P2_LO);
  // Adds -P1.
  fourth.add(~P1_HI, -P1_LO);
  let at = start;
  for (; at + 32 <= end; at += 32) {
    mixRound(first, bytes, at);
    mixRound(second, bytes, at + 8);
    mixRound(third, bytes, at + 16);
    mixRound(fourth, bytes, at + 24);
  }
  hash.set(0, 0);
  addRotated(hash, first, 1);
  addRotated(hash, second, 7);
  addRotated(hash, third, 12);
  addRotated(hash, fourth, 18);
  for (const accumulator of stripe) {
    accumulator.multiply(P2_HI, P2_LO);
    accumulator.rotateLeft(31);
    accumulator.multiply(P1_HI, P1_LO);
    hash.xor(accumulator.hi, accumulator.lo);
    hash.multiply(P1_HI, P1_LO);
    hash.add(P4_HI, P4_LO);
  }
  return at;
}

/** Mixes the 8 bytes at `at` into an accumulator. */
function mixRound(accumulator: Word64, bytes: Uint8Array, at: number): void {
  input.set(int32(bytes, at + 4), int32(bytes, at));
  input.multiply(P2_HI, P2_LO);
  accumulator.add(input.hi, input.lo);
  accumulator.rotateLeft(31);
  accumulator.multiply(P1_HI, P1_LO);
}

const input = new Word64();

function addRotated(hash: Word64, accumulator: Word64, bits: number): void {
  rotated.set(accumulator.hi, accumulator.lo);
  rotated.rotateLeft(bits);
  hash.add(rotated.hi, rotated.lo);
}

const rotated = new Word64();

/** Reads a little-endian word at any alignment. */
export function int32(bytes: Uint8Array, at: number): number {
  return bytes[at]! | (bytes[at + 1]! << 8) | (bytes[at + 2]! << 16) | (bytes[at + 3]! << 24);
}
