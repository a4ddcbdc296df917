import t from 'tap';
import { Runtime } from '../../../src/runtime/runtime.js';
import type { RuntimeChange } from '../../../src/runtime/snapshot.js';
import { valueOfText } from '../../../src/runtime/value.js';
import { RuntimePublication } from '../../../src/server/runtime/runtime-publication.js';
import type { ToWorker } from '../../../src/worker/messages/messages.js';
import { countTurns } from '../../common/time/count-turns.js';

function change(version: number, count: number): RuntimeChange {
  return {
    version,
    entries: Array.from({ length: count }, (_, i) => [`k${i}`, valueOfText(String(version))] as const),
  };
}

t.test('a large change is sent in parts, one in each turn, and later changes follow it', async (t) => {
  const sent: { turn: number; change: RuntimeChange; isWhole: boolean }[] = [];
  const turn = countTurns(t);
  const broadcast = (message: ToWorker) => {
    if (message.kind !== 'runtime') throw new Error(message.kind);
    sent.push({ turn: turn(), change: message.change, isWhole: message.isWhole });
  };
  const workers = { isStarted: false, broadcast };
  const publication = new RuntimePublication(workers);
  publication.send(change(1, 10));
  t.equal(sent.length, 0, 'starting workers have all values');
  workers.isStarted = true;
  publication.send(change(2, 10));
  t.match(sent, [{ change: { version: 2 }, isWhole: true }], 'a small one is sent at once');
  await publication.sent();
  publication.send(change(3, 10_000));
  publication.send(change(4, 1));
  publication.send(change(5, 0));
  await publication.sent();
  const parts = sent.slice(1);
  t.same(
    parts.map((part) => part.change.version),
    [...Array<number>(10).fill(3), 4, 5],
  );
  t.same(
    parts.map((part) => part.isWhole),
    [...Array<boolean>(9).fill(false), true, true, true],
  );
  t.equal(new Set(parts.map((part) => part.turn)).size, parts.length);
  t.same(
    parts.slice(0, 10).flatMap((part) => part.change.entries.map(([key]) => key)),
    change(3, 10_000).entries.map(([key]) => key),
  );
});

t.test('a change that a thread started with is a no-op there', async (t) => {
  const runtime = new Runtime({ version: 5, values: new Map([['k0', valueOfText('5')]]) });
  runtime.change(change(5, 2));
  runtime.change(change(4, 2));
  t.same([...runtime.values.keys()], ['k0']);
  runtime.change({ version: 6, entries: [['k0', undefined]] });
  t.equal(runtime.values.size, 0);
  t.equal(runtime.version, 6);
});
