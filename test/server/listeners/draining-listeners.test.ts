// Replaced listeners without connections, with workers and drains that the test controls.

import t from 'tap';
import type { ListenerDrains } from '../../../src/server/draining/listener-drains.js';
import { DrainingListeners } from '../../../src/server/listeners/changes/draining-listeners.js';
import type { PrimaryListener } from '../../../src/server/listeners/version/primary-listener.js';
import type { OpenConnections } from '../../../src/server/workers/open-connections.js';

const KEPT_EMPTY = 16;
const QUIET: OpenConnections = { listeners: new Map(), closing: 0, accepting: 0, isComplete: true };

t.test('listeners whose drain time ends during a check do not count: those that may stay do', async (t) => {
  const looks: (() => void)[] = [];
  const overs: (() => void)[] = [];
  let answer = (_open: OpenConnections): void => undefined;
  t.intercept(globalThis, 'setTimeout', { value: (look: () => void) => looks.push(look) });
  const drains = {
    drainReplaced: (_id: number, over: () => void) => {
      overs.push(over);
      return { window: {}, cancel: () => undefined };
    },
    count: () => undefined,
    openConnections: () =>
      new Promise<OpenConnections>((resolve) => {
        answer = resolve;
      }),
  } as unknown as ListenerDrains;
  const draining = new DrainingListeners({ isDone: false }, drains, { remove: () => undefined });
  for (let id = 0; id < KEPT_EMPTY + 2; id++) {
    draining.addListener({ id, isStopped: true, close: () => undefined } as unknown as PrimaryListener, false);
  }
  const look = async (during?: () => void) => {
    looks.shift()!();
    during?.();
    answer(QUIET);
    for (let tick = 0; tick < 10; tick++) await undefined;
  };
  await look();
  t.equal(draining.listenerCount, KEPT_EMPTY + 2, 'those that are empty for the first time stay');
  await look(() => {
    for (const over of overs.slice(0, 4)) over();
  });
  t.equal(draining.listenerCount, KEPT_EMPTY - 2);
  draining.close();
});
