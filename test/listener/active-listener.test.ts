// The filter chains of a listener on one worker: current ones, and former ones that only keep their connections.

import t from 'tap';
import type { Transport } from '../../src/io/transport/transport.js';
import { ActiveListener, type ActiveListenerOptions } from '../../src/listener/active-listener.js';
import { DownstreamConnection } from '../../src/listener/downstream-connection.js';
import type { HandedOverConnection } from '../../src/listener/hand-over.js';
import { ListenerDrain } from '../../src/listener/listener-drain.js';
import type { FilterChain } from '../../src/listener/network-filter.js';
import type { OpenConnections } from '../../src/listener/open-connections.js';
import { ListenerStats } from '../../src/stats/layouts/listener.js';

function chain(id: number): FilterChain {
  const terminal = { accept: () => undefined };
  return {
    id,
    name: `${id}`,
    Connection: DownstreamConnection,
    terminal,
    drain: new ListenerDrain(undefined),
    isTls: false,
    names: { filterChainName: '', metadata: undefined, listenerMetadata: undefined },
    tls: undefined,
    fingerprint: () => `${id}`,
  };
}

t.test('a former chain accepts connections again when an update is reverted', (t) => {
  const [before, after] = [chain(1), chain(2)];
  const options = { id: 7, name: 'door', transport: {} as Transport } as ActiveListenerOptions;
  const finder = { only: before, find: () => before };
  const listener = new ActiveListener(options, [before], finder);
  listener.setChains([after], finder);
  t.equal(listener.chain(1), before, 'its connections keep it');
  listener.setChains([before], finder);
  const counts = new Map<number, OpenConnections>();
  listener.countOpen(counts);
  t.same([...counts.keys()], [7, 2], 'only the other one is a former chain');
  listener.removeChain(1);
  t.equal(listener.chain(1), before);
  listener.removeChain(2);
  t.equal(listener.chain(2), undefined);
  t.end();
});

t.test('stopping a socket that does not listen yet does not accept its backlog', (t) => {
  const removed: [number, boolean][] = [];
  const transport = {
    addListener: (fd: number) => fd,
    accept: () => {},
    removeListener: (id: number, acceptRest: boolean) => void removed.push([id, acceptRest]),
  } as unknown as Transport;
  for (const isAccepting of [false, true]) {
    const only = chain(1);
    const options = { id: 7, name: 'door', transport } as ActiveListenerOptions;
    const listener = new ActiveListener(options, [only], { only, find: () => only });
    listener.takeSockets([3, 4], false);
    if (isAccepting) listener.accept();
    listener.stop(true);
  }
  t.same(removed, [
    [3, false],
    [4, false],
    [3, true],
    [4, true],
  ]);
  t.end();
});

t.test('the overload manager rejects new connections, and not those of another process', (t) => {
  const closed: number[] = [];
  const counted: number[] = [];
  const only = chain(1);
  only.terminal.prepareTakeOver = () => ({ pausesClient: false, begin: () => ({}) as never, drop: () => {} });
  const options = {
    name: 'door',
    transport: { adoptFrozen: () => 5, close: (id: number) => closed.push(id) },
    limits: { highWatermark: 1 },
    stats: { increment: (at: number) => counted.push(at) },
    connectionLimit: { tryAcquire: () => true },
    overload: { rejectsConnection: () => true },
  } as unknown as ActiveListenerOptions;
  const listener = new ActiveListener(options, [only], { only, find: () => only });
  t.equal(listener.onAccept(3, 0, 0), undefined);
  t.same([closed, counted], [[3], [ListenerStats.at.downstream_cx_overload_reject]]);
  const handedOver = { facts: { fingerprint: '1' }, sockets: [{ pending: [] }] } as unknown as HandedOverConnection;
  t.type(listener.prepareTakeOver(handedOver), 'object');
  t.equal(counted.length, 1);
  t.end();
});
