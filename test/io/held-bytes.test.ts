// Held bytes are complete and in order, in blocks of any size, until none is left.

import t from 'tap';
import { HeldBytes } from '../../src/io/held-bytes.js';
import { Memory, NO_BLOCK } from '../../src/io/memory.js';

const PART = 100_000;

function setUp() {
  const memory = new Memory({ receiveBytes: PART, scratchBytes: 4096, arenaBytes: 2 * 1024 * 1024 });
  for (let i = 0; i < PART; i++) memory.bytes[i] = (i * 31 + (i >> 8) * 7) & 255;
  const part = Buffer.from(memory.bytes.subarray(0, PART));
  const body = new HeldBytes(memory);
  const kept = () => {
    const pieces: Buffer[] = [];
    body.forEach((offset, length) => {
      pieces.push(Buffer.from(memory.bytes.subarray(offset, offset + length)));
    });
    return pieces;
  };
  return { memory, part, body, kept };
}

t.test('large pieces are used while memory is available', (t) => {
  const { memory, part, body, kept } = setUp();
  for (let i = 0; i < 3; i++) t.ok(body.append(0, PART));
  t.ok(Buffer.concat(kept()).equals(Buffer.concat([part, part, part])));
  t.equal(kept().length, Math.ceil((3 * PART) / 65536));
  body.clear();
  t.equal(memory.retainedBytes(), 0);
  t.end();
});

t.test('smaller pieces are used when the larger blocks are used up', (t) => {
  const { memory, part, body, kept } = setUp();
  t.ok(body.append(0, PART));
  const small = Array.from({ length: 100 }, () => memory.retain(16384));
  while (memory.retain(16385) !== NO_BLOCK);
  // One block of each chunk stays, so that no chunk is free.
  for (const [index, block] of small.entries()) if (index % 4 > 0) memory.release(block);
  memory.endTurn();
  const others = memory.retainedBytes() - 2 * 65536;
  for (let i = 0; i < 9; i++) t.ok(body.append(0, PART));
  t.equal(body.bytes, 10 * PART);
  t.ok(Buffer.concat(kept()).equals(Buffer.concat(Array(10).fill(part))));
  body.clear();
  t.equal(memory.retainedBytes(), others);
  t.end();
});

t.test('bytes that do not fit are refused, and the held bytes stay', (t) => {
  const { memory, part, body, kept } = setUp();
  let appended = 0;
  while (body.append(0, PART)) appended++;
  t.ok(appended > 15, 'all sizes were used up');
  t.ok(body.bytes >= appended * PART && body.bytes < (appended + 1) * PART);
  const expected = Buffer.concat(Array(appended + 1).fill(part)).subarray(0, body.bytes);
  t.ok(Buffer.concat(kept()).equals(expected));
  body.clear();
  t.equal(memory.retainedBytes(), 0);
  t.end();
});

t.test('consumed bytes are released block by block', (t) => {
  const { memory, part, body, kept } = setUp();
  body.append(0, PART);
  body.append(0, 1000);
  const all = Buffer.concat([part, part.subarray(0, 1000)]);
  let taken = 0;
  while (!body.isEmpty) {
    const { start, end } = body.front;
    const to = Math.min(start + 30_000, end);
    t.ok(all.subarray(taken, taken + to - start).equals(memory.bytes.subarray(start, to)));
    body.consume(to);
    taken += to - start;
    t.equal(body.bytes, all.length - taken);
    t.ok(Buffer.concat(kept()).equals(all.subarray(taken)));
  }
  t.equal(taken, all.length);
  t.equal(memory.retainedBytes(), 0);
  t.end();
});
