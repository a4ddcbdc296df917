// The drain before exit, with listeners and connections that the test controls.

import { setImmediate as nextTurn } from 'node:timers/promises';
import t from 'tap';
import { drainBeforeExit } from '../../../src/server/draining/exit-drain.js';
import type { ListenerDrains } from '../../../src/server/draining/listener-drains.js';
import type { OpenConnections } from '../../../src/server/workers/open-connections.js';
import { captureLog } from '../../admin/capture-log.js';
import { waitFor } from '../../e2e/harness/wait-for.js';

const POLL_MS = 100;
/** Timers may be early by less than a millisecond. */
const EARLY_MS = 1;

const isParentIdle = () => Promise.resolve(true);

t.test('workers that have not closed their sockets yet are polled, with a pause between', async (t) => {
  const log = captureLog(t);
  const polls: number[] = [];
  const accepting = [2, 2, 1, 0];
  const drains = {
    start: () => ({ done: new Promise(() => undefined) }),
    stopListeners: () => Promise.resolve(),
    openConnections: async (): Promise<OpenConnections> => {
      polls.push(performance.now());
      await nextTurn();
      return { listeners: new Map(), closing: 0, accepting: accepting.shift() ?? 0, isComplete: true };
    },
  } as unknown as ListenerDrains;
  await drainBeforeExit(drains, 40, new AbortController().signal, { isAccepting: true, isParentIdle });
  const waits = polls.slice(2).map((at, index) => at - polls[index + 1]!);
  t.match(log.text(), /the last connection has ended/);
  t.equal(waits.length, 2, 'one poll before they stop, one at each of the numbers after it');
  t.ok(
    waits.every((ms) => ms >= POLL_MS - EARLY_MS),
    `${waits}`,
  );
});

t.test('where another process accepts, no time is left for new connections', async (t) => {
  const log = captureLog(t);
  let polls = 0;
  const drains = {
    start: () => ({ done: new Promise(() => undefined) }),
    stopListeners: () => Promise.resolve(),
    openConnections: async (): Promise<OpenConnections> => {
      polls++;
      return { listeners: new Map(), closing: 0, accepting: 0, isComplete: true };
    },
  } as unknown as ListenerDrains;
  const exit = drainBeforeExit(drains, 600_000, new AbortController().signal, { isAccepting: false, isParentIdle });
  // Long before the time reserved for load balancers is over.
  await waitFor(() => polls > 0, { what: 'a poll of its connections', deadlineMs: 3000 });
  await exit;
  t.match(log.text(), /the last connection has ended/);
  t.notMatch(log.text(), /new connections are accepted/);
});
