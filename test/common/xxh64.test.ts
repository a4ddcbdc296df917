import t from 'tap';
import { Word64, xxh64, xxh64Text } from '../../src/common/xxh64.js';

const hash = new Word64();
const value = () => (BigInt(hash.hi >>> 0) << 32n) | BigInt(hash.lo >>> 0);

t.test('hashes equal those of the reference implementation, for every kind of remainder', async (t) => {
  // Lengths, seeds, and hashes by xxhash-wasm, which is the reference implementation as WebAssembly.
  const known: [length: number, seed: number, hash: string][] = [
    [0, 0, 'ef46db3751d8e999'],
    [1, 0, 'a96c7f0ce858bbb7'],
    [3, 0, '2f2874086c7628d8'],
    [4, 0, '14fe45377c822387'],
    [8, 0, '2b4ee232c9349d82'],
    [12, 1, 'efc0a9f0a7181dad'],
    [15, 0, '006dc4b261e6aad4'],
    [31, 0xffffffff, 'ade823ff3d0984a1'],
    [32, 0, 'ca18b6ae4913772a'],
    [33, 1, '01aa806c3b26007c'],
    [64, 0, '1dec0aba21dd4a5b'],
    [100, 0xffffffff, '16ba279d3678ef5e'],
    [1000, 0, '6daabc904a8cde6e'],
  ];
  for (const [length, seed, expected] of known) {
    const bytes = Uint8Array.from({ length: length + 5 }, (_, i) => ((i - 3) * 151 + 7) & 255);
    xxh64(bytes, 3, length + 3, hash, seed);
    t.equal(value().toString(16).padStart(16, '0'), expected, `${length} bytes, seed ${seed}`);
    xxh64Text(Buffer.from(bytes.subarray(3, length + 3)).toString('latin1'), hash, seed);
    t.equal(value().toString(16).padStart(16, '0'), expected, `${length} characters`);
  }
});

t.test('a host has the same places on the ring as in Envoy', async (t) => {
  xxh64Text('127.0.0.1:94_0', hash);
  t.equal(value(), 15516499411664133160n);
  xxh64Text('127.0.0.1:94_1', hash);
  t.equal(value(), 833437586790550860n);
});

t.test('remainders are exact for any divisor', async (t) => {
  for (const number of [0n, 1n, 0xffffffffffffffffn, 0x8000000000000000n, 0x123456789abcdef0n]) {
    hash.set(Number(number >> 32n), Number(number & 0xffffffffn));
    for (const divisor of [1, 2, 100, 65537, 5000011, 2 ** 32 - 5, 2 ** 32]) {
      t.equal(hash.modulo(divisor), Number(number % BigInt(divisor)), `${number} % ${divisor}`);
    }
  }
});
