// The memory of a thread: scratch until the end of the turn, blocks until their release, and the behaviour when it is full.

import t from 'tap';
import { MAX_BLOCK_BYTES, Memory, NO_BLOCK } from '../../src/io/memory.js';

const LAYOUT = { receiveBytes: 4096, scratchBytes: 4096, arenaBytes: 16 * 65536 };

t.test('blocks have the requested size and never overlap', (t) => {
  const memory = new Memory(LAYOUT);
  const taken: [number, number][] = [];
  const sizes: number[] = [];
  for (const length of [1, 1024, 1025, 4096, 5000, 16384, 17 * 1024, 32768, 32769, 65536, 65537]) {
    const block = memory.retain(length);
    const size = memory.blockSize(block);
    sizes.push(size / 1024);
    t.ok(taken.every(([start, end]) => block >= end || block + size <= start));
    taken.push([block, block + size]);
  }
  t.same(sizes, [1, 1, 2, 4, 8, 16, 32, 32, 64, 64, 128]);
  t.equal(memory.retainedBytes(), sizes.reduce((sum, size) => sum + size, 0) * 1024);
  for (const [block] of taken) memory.release(block);
  t.equal(memory.retainedBytes(), 0);
  t.end();
});

t.test('any size may use the whole arena, and the rest of larger blocks when it is full', (t) => {
  const memory = new Memory(LAYOUT);
  t.equal(memory.retain(MAX_BLOCK_BYTES + 1), NO_BLOCK);
  t.not(memory.retain(20_000), NO_BLOCK, 'half of a chunk');
  let count = 0;
  while (memory.retain(10) !== NO_BLOCK) count++;
  t.equal(count, 15 * 64 + 1);
  t.equal(memory.retainCopy(0, 10), NO_BLOCK);
  const { fallbacks, limit, refusals, used } = memory.use();
  t.same({ fallbacks, refusals, used }, { fallbacks: 1, refusals: 3, used: limit });
  t.end();
});

t.test('divisible bytes get smaller blocks when the larger ones are used up, until none are left', (t) => {
  const memory = new Memory(LAYOUT);
  for (const size of [1024, 4096, 16384]) memory.retain(size);
  const sizes: number[] = [];
  for (let block = memory.retainPiece(1 << 20); block !== NO_BLOCK; block = memory.retainPiece(1 << 20)) {
    const size = memory.blockSize(block);
    if (size !== sizes.at(-1)) sizes.push(size);
  }
  t.same(sizes, [65536, 16384, 4096, 1024]);
  t.equal(memory.retainedBytes(), LAYOUT.arenaBytes, 'all of it was used');
  t.equal(memory.retainPiece(1), NO_BLOCK);
  t.end();
});

t.test('a block may be larger than needed where memory is available', (t) => {
  const memory = new Memory(LAYOUT);
  t.equal(memory.blockSize(memory.retain(70_000, 200_000)), 4 * 65536);
  t.equal(memory.blockSize(memory.retain(70_000, 1_000_000)), 2 * 65536);
  t.equal(memory.use().fallbacks, 1);
  t.end();
});

t.test('a released block keeps its bytes until the turn ends, and is reused afterwards', (t) => {
  const memory = new Memory({ ...LAYOUT, arenaBytes: 65536 });
  memory.bytes.set([1, 2, 3], 0);
  const block = memory.retainCopy(0, 3);
  memory.release(block);
  const seen = new Set<number>();
  for (let other = memory.retain(1); other !== NO_BLOCK; other = memory.retain(1)) seen.add(other);
  t.notOk(seen.has(block));
  t.same([...memory.bytes.subarray(block, block + 3)], [1, 2, 3]);
  memory.endTurn();
  t.equal(memory.retain(1), block);
  t.end();
});

t.test('scratch is reset with each turn; overflow goes to the arena for the turn', (t) => {
  const memory = new Memory(LAYOUT);
  const first = memory.scratch(4000);
  const second = memory.scratch(200);
  t.ok(second >= memory.receiveBytes + 4096, 'in the arena');
  t.equal(memory.retainedBytes(), 1024);
  memory.endTurn();
  t.equal(memory.retainedBytes(), 0);
  t.equal(memory.scratch(4000), first);
  t.throws(() => memory.scratch(MAX_BLOCK_BYTES + 1), RangeError);
  t.end();
});

t.test('returned scratch is reused', (t) => {
  const memory = new Memory(LAYOUT);
  memory.scratch(100);
  const second = memory.scratch(3000);
  memory.withdrawScratch(second);
  t.equal(memory.scratch(3000), second);
  memory.withdrawScratch(memory.scratch(2000));
  t.equal(memory.retainedBytes(), 0, 'from the arena too');
  t.end();
});

t.test('permanent bytes are never overwritten', (t) => {
  const memory = new Memory(LAYOUT);
  const places = [memory.permanent(100), memory.permanent(100)];
  memory.scratch(3000);
  // These exceed the scratch area: they get a block.
  places.push(memory.permanent(1000));
  for (const place of places) memory.bytes.fill(7, place, place + 100);
  memory.endTurn();
  for (let turn = 0; turn < 3; turn++) {
    for (let i = 0; i < 50; i++) {
      const scratch = memory.scratch(100);
      memory.bytes.fill(9, scratch, scratch + 100);
    }
    memory.endTurn();
  }
  for (const place of places) t.ok(memory.bytes.subarray(place, place + 100).every((byte) => byte === 7));
  t.end();
});

t.test('text is Latin-1, byte for byte', (t) => {
  const memory = new Memory(LAYOUT);
  for (let i = 0; i < 256; i++) memory.bytes[i] = i;
  const text = memory.text(0, 256);
  t.equal(text.length, 256);
  for (let i = 0; i < 256; i++) t.equal(text.charCodeAt(i), i);
  t.end();
});
