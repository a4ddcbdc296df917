// Filter chains of a listener on one worker: which take connections, and which only go on.

import t from 'tap';
import type { Transport } from '../../src/io/transport.js';
import {
  ActiveListener,
  type ActiveListenerOptions,
  type OpenConnections,
} from '../../src/listener/active-listener.js';
import { ListenerDrain } from '../../src/listener/listener-drain.js';
import type { FilterChain } from '../../src/listener/network-filter.js';

function chain(id: number): FilterChain {
  const terminal = { accept: () => undefined };
  return { id, name: `${id}`, terminal, drain: new ListenerDrain(undefined), fingerprint: () => `${id}` };
}

t.test('a chain that was left takes connections again when an update is taken back', (t) => {
  const [before, after] = [chain(1), chain(2)];
  const options = { id: 7, name: 'door', transport: {} as Transport } as ActiveListenerOptions;
  const finder = { only: before, find: () => before };
  const listener = new ActiveListener(options, [before], finder);
  listener.setChains([after], finder);
  t.equal(listener.chain(1), before, 'its connections go on with it: it is not built anew');
  listener.setChains([before], finder);
  const counts = new Map<number, OpenConnections>();
  listener.countOpen(counts);
  t.same([...counts.keys()], [7, 2], 'only the other one goes');
  listener.removeChain(1);
  t.equal(listener.chain(1), before);
  listener.removeChain(2);
  t.equal(listener.chain(2), undefined);
  t.end();
});
