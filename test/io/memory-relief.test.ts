// Which connections lose their memory when it is short, and which waiters get it.

import t from 'tap';
import { Memory } from '../../src/io/memory.js';
import { MemoryRelief, type Relieved } from '../../src/io/memory-relief.js';
import type { Stall } from '../../src/io/transport/connection-handler.js';

const CHUNK = 65_536;
/** Short above 300 chunks in use, scarce above 336, crowded above 375. */
const CHUNKS = 400;
const START_MS = 100_000;

interface Holder extends Partial<Stall> {
  chunks?: number;
}

/** Returns a thread with connections that hold memory, each for one second longer than the one before it. */
function thread(holders: readonly Holder[]) {
  const memory = new Memory({ receiveBytes: 4096, scratchBytes: 4096, arenaBytes: CHUNKS * CHUNK });
  const clock = { monotonicMs: START_MS };
  const ended: number[] = [];
  const gone = new Set<number>();
  const all = holders.map(({ chunks = 25, ...more }, index): Stall => {
    const blocks = Array.from({ length: chunks }, () => memory.retain(CHUNK));
    const id = index + 1;
    const sinceMs = START_MS - 5000 - id * 1000;
    const end = () => {
      ended.push(id);
      gone.add(id);
      for (const block of blocks.splice(0)) memory.release(block);
    };
    return { id, sinceMs, movedMs: sinceMs, bytes: chunks * CHUNK, unsent: 0, end, ...more };
  });
  const change = (id: number, to: Partial<Stall>) => void Object.assign(all[id - 1]!, to);
  let looks = 0;
  const transport: Relieved = {
    memory,
    onPressure: () => {},
    stalls: () => {
      looks++;
      return all.filter(({ id }) => !gone.has(id));
    },
    endStall: (stall) => stall.end(),
    beginTurn: () => {},
    settle: () => memory.endTurn(),
  };
  const relief = new MemoryRelief(transport, clock);
  const turn = (afterMs = 0) => {
    clock.monotonicMs += afterMs;
    memory.endTurn();
    if (memory.pressure.needsRelief) transport.onPressure();
    return ended.splice(0);
  };
  return { change, memory, relief, turn, looks: () => looks };
}

t.test('no connection is ended while memory is not short', (t) => {
  const { turn, looks } = thread(Array(12).fill({}));
  t.same(turn(), []);
  t.equal(looks(), 0);
  t.end();
});

t.test('the connection that has held its memory longest is ended first, and no more than necessary', (t) => {
  const { memory, relief, turn } = thread(Array(13).fill({}));
  t.same(turn(), [13, 12], 'down to a sixteenth below the mark');
  t.equal(relief.ended, 2);
  t.same(turn(), []);
  t.equal(memory.retainedBytes(), 275 * CHUNK);
  t.end();
});

t.test('active connections, and those that hold little, are spared until memory is scarce', (t) => {
  const moving = { movedMs: START_MS - 500 };
  const small = { chunks: 0, bytes: 2048 };
  const { memory, turn, looks } = thread([...Array(12).fill(moving), ...Array(3).fill(small), { chunks: 1 }]);
  const more = memory.retain(20 * CHUNK);
  t.same(turn(), [16]);
  t.same(turn(10), []);
  t.equal(looks(), 1, 'the next check is delayed');
  const most = memory.retain(30 * CHUNK);
  t.same(turn(10), [15, 14, 13, 12, 11, 10], 'when memory becomes scarce the oldest is ended, active or not');
  for (const block of [more, most]) memory.release(block);
  t.end();
});

t.test('a reader is stalled when it has read nothing for five seconds', (t) => {
  const { change, turn } = thread(Array(4).fill({ chunks: 76, unsent: 5000 }));
  t.same(turn(), [], 'their progress is not known yet');
  change(4, { unsent: 4900 });
  t.same(turn(4000), []);
  t.same(turn(1500), [3], 'the oldest one has read some');
  t.end();
});

t.test('waiting connections get memory in order as it becomes available, even without a turn', async (t) => {
  const { memory, turn } = thread([]);
  const blocks = Array.from({ length: 380 }, () => memory.retain(CHUNK));
  const served: string[] = [];
  for (const name of ['first', 'second', 'third', 'left']) {
    const waiter = { onRoom: () => void served.push(name) };
    t.ok(memory.pressure.waiting.add(waiter, 2 * CHUNK));
    if (name === 'left') memory.pressure.waiting.remove(waiter);
  }
  t.notOk(
    memory.pressure.waiting.add({ onRoom: () => {} }, 20 * CHUNK),
    'a sixteenth of the arena may be requested by waiters',
  );
  turn();
  t.same(served, []);
  for (const block of blocks.splice(0, 9)) memory.release(block);
  turn();
  t.same(served, ['first'], 'each gets twice what it has');
  for (const block of blocks.splice(0)) memory.release(block);
  await new Promise((resolve) => setTimeout(resolve, 200));
  t.same(served, ['first', 'second', 'third']);
  t.ok(memory.pressure.waiting.isEmpty);
});
