// The arena under random sequences of calls: blocks never overlap, nothing leaks, the limit holds, pages are returned to the
// kernel.

import fc from 'fast-check';
import t from 'tap';
import { Arena, NO_BLOCK } from '../../src/io/arena/arena.js';
import { CHUNK_BYTES } from '../../src/io/arena/chunk-pool.js';
import { PageReturn } from '../../src/io/arena/page-return.js';

const START = 4096 + 16;
const CHUNKS = 150;

/** A reference model: maps every byte of the arena to its block. */
class Model {
  readonly out = new Map<number, number>();
  readonly resting = new Set<number>();

  overlaps(block: number, size: number): boolean {
    for (const [other, otherSize] of this.out) if (block < other + otherSize && other < block + size) return true;
    return false;
  }
  get bytes(): number {
    let sum = 0;
    for (const [block, size] of this.out) if (!this.resting.has(block)) sum += size;
    return sum;
  }
  endTurn(): void {
    for (const block of this.resting) this.out.delete(block);
    this.resting.clear();
  }
}

const length = fc.oneof(
  fc.integer({ min: 1, max: 2048 }),
  fc.integer({ min: 1, max: 70_000 }),
  fc.integer({ min: 1, max: 8704 * 1024 }),
);
const action = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({ kind: fc.constant('take' as const), length, times: fc.integer({ min: 1, max: 40 }) }),
  },
  {
    weight: 4,
    arbitrary: fc.record({
      kind: fc.constant('give' as const),
      from: fc.nat(),
      times: fc.integer({ min: 1, max: 60 }),
    }),
  },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('end turn' as const) }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('collect' as const) }) },
  {
    weight: 1,
    arbitrary: fc.record({ kind: fc.constant('purge' as const), keep: fc.nat(CHUNKS), most: fc.nat(CHUNKS) }),
  },
);

t.test('blocks do not overlap, stay within the limit, and are all released, for random sequences of calls', (t) => {
  fc.assert(
    fc.property(fc.array(action, { maxLength: 60 }), (actions) => {
      const arena = new Arena(START, CHUNKS);
      const model = new Model();
      for (const act of actions) {
        if (act.kind === 'take') {
          for (let time = 0; time < act.times; time++) take(arena, model, act.length);
        } else if (act.kind === 'give') {
          const blocks = [...model.out.keys()].filter((block) => !model.resting.has(block));
          for (const block of blocks.slice(act.from % (blocks.length + 1)).slice(0, act.times)) {
            arena.release(block);
            model.resting.add(block);
          }
        } else if (act.kind === 'end turn') {
          arena.endTurn();
          model.endTurn();
        } else if (act.kind === 'collect') arena.collect();
        else purge(arena, model, act.keep, act.most);
        equal(arena.bytesAllocated(), model.bytes, 'bytes of the allocated blocks');
        equal(arena.chunks.inUse <= CHUNKS, true, 'the limit');
      }
      for (const block of model.out.keys()) if (!model.resting.has(block)) arena.release(block);
      arena.endTurn();
      arena.collect();
      equal(arena.chunks.inUse, 0, 'chunks in use at the end');
      let touched = arena.chunks.touched;
      arena.purge(0, CHUNKS, (_start, bytes) => {
        touched -= bytes / CHUNK_BYTES;
      });
      equal(touched, 0, 'chunks whose pages were not returned');
      equal(arena.take(CHUNKS * CHUNK_BYTES), START, 'the whole arena is one block again');
    }),
    { numRuns: 300 },
  );
  t.end();
});

t.test('the arena is full only when no chunk is unused: until then each size can be allocated', (t) => {
  fc.assert(
    fc.property(fc.array(fc.integer({ min: 1, max: 65_536 }), { minLength: 1, maxLength: 2000 }), (lengths) => {
      const arena = new Arena(START, 40);
      const blocks: number[] = [];
      for (const each of lengths) {
        const hasChunk = arena.chunks.inUse < 40;
        const block = arena.take(each);
        if (hasChunk) equal(block === NO_BLOCK, false, `${each} bytes`);
        if (block !== NO_BLOCK) blocks.push(block);
        // Every third one is released at once.
        if (blocks.length % 3 === 0 && blocks.length > 0) arena.release(blocks.pop()!);
        arena.endTurn();
      }
    }),
    { numRuns: 100 },
  );
  t.end();
});

t.test('after a burst of one size its memory is available to the others', (t) => {
  const arena = new Arena(START, 64);
  for (const size of [1000, 2000, 4000, 8000, 16_000, 32_000, 64_000, 600_000]) {
    const blocks: number[] = [];
    for (let block = arena.take(size); block !== NO_BLOCK; block = arena.take(size)) blocks.push(block);
    t.ok(blocks.length * arena.sizeOf(blocks[0]!) >= 60 * CHUNK_BYTES, `blocks of ${size} bytes fill the arena`);
    for (const block of blocks) arena.release(block);
    arena.endTurn();
  }
  t.equal(arena.bytesAllocated(), 0);
  t.end();
});

t.test('long blocks fit beside short ones that stay', (t) => {
  const arena = new Arena(START, 1024);
  const kept: number[] = [];
  for (let round = 0; round < 200; round++) {
    const short = Array.from({ length: 50 }, () => arena.take(3000));
    kept.push(short.pop()!);
    const long = Array.from({ length: 4 }, () => arena.take(8 * 1024 * 1024));
    t.notOk(long.includes(NO_BLOCK), `round ${round}`);
    for (const block of [...short, ...long]) arena.release(block);
    arena.endTurn();
  }
  t.ok(kept.every((block) => block !== NO_BLOCK));
  t.end();
});

t.test('pages unused for two periods are returned in steps; the peak of the last periods stays', (t) => {
  const arena = new Arena(START, 2000);
  const pages = new PageReturn(arena);
  const blocks = Array.from({ length: 1500 }, () => arena.take(65_536));
  for (const block of blocks.slice(100)) arena.release(block);
  arena.endTurn();
  const returned: [number, number][] = [];
  const note = (start: number, bytes: number) => void returned.push([start, bytes]);
  let steps = 0;
  while (returned.length === 0 && steps < 100) {
    steps++;
    let hasMore = pages.step(note);
    while (hasMore) hasMore = pages.purge(note);
  }
  t.ok(steps > 5, 'not in one step');
  t.equal(sum(returned), 1400 * CHUNK_BYTES);
  for (const [start, bytes] of returned)
    t.ok(blocks.slice(0, 100).every((b) => b + CHUNK_BYTES <= start || b >= start + bytes));
  t.ok(returned.length <= 7, 'in long ranges');
  t.equal(arena.chunks.touched, 0);

  // Waves: each uses 500 chunks briefly.
  returned.length = 0;
  for (let second = 0; second < 60; second++) {
    const wave = Array.from({ length: 500 }, () => arena.take(65_536));
    for (const block of wave) arena.release(block);
    arena.endTurn();
    pages.step(note);
  }
  t.equal(returned.length, 0, 'their pages stay');
  t.end();
});

function take(arena: Arena, model: Model, wanted: number): void {
  const block = arena.take(wanted);
  if (block === NO_BLOCK) return;
  const size = arena.sizeOf(block);
  equal(size >= wanted && (size < 2 * wanted || size === 1024 || size % CHUNK_BYTES === 0), true, 'size');
  equal(block >= START && block + size <= START + CHUNKS * CHUNK_BYTES, true, 'within the arena');
  equal(model.overlaps(block, size), false, `a separate block for ${wanted} bytes`);
  model.out.set(block, size);
}

function purge(arena: Arena, model: Model, keep: number, most: number): void {
  let chunks = 0;
  const { touched } = arena.chunks;
  arena.purge(keep, most, (start, bytes) => {
    equal(model.overlaps(start, bytes), false, 'pages of allocated blocks stay');
    chunks += bytes / CHUNK_BYTES;
  });
  equal(chunks, Math.max(0, Math.min(touched - keep, most)), 'returned chunks');
}

function sum(ranges: readonly (readonly [number, number])[]): number {
  return ranges.reduce((total, [, bytes]) => total + bytes, 0);
}

function equal<T>(found: T, wanted: T, what: string): void {
  if (found !== wanted) throw new Error(`${what}: ${String(found)} instead of ${String(wanted)}`);
}
