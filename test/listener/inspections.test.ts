// The inspections of one listener with a test transport and clock: what each filter sees, timeouts, and cleanup in all cases.

import t from 'tap';
import { AddressKind } from '../../src/io/addresses/address.js';
import { TimingWheel } from '../../src/io/time/timing-wheel.js';
import type { ConnectionHandler } from '../../src/io/transport/connection-handler.js';
import type { Transport } from '../../src/io/transport/transport.js';
import type { InspectedSocket } from '../../src/listener/inspected-socket.js';
import { type InspectionSettings, Inspections } from '../../src/listener/inspections.js';
import { type ListenerFilter, Verdict } from '../../src/listener/listener-filter.js';
import { ListenerStats } from '../../src/stats/layouts/listener.js';
import type { Scope } from '../../src/stats/thread-stats.js';

const PEER = { kind: AddressKind.Ip4, ip: '127.0.0.1', port: 1, path: '' };

/** Consumes a line, or needs more bytes. `saw` records its input. */
class LineFilter implements ListenerFilter {
  readonly maxBytes = 8;
  readonly saw: string[] = [];

  inspect(bytes: Uint8Array): number {
    const text = Buffer.from(bytes).toString();
    this.saw.push(text);
    if (text.startsWith('!')) return Verdict.Refuses;
    const end = text.indexOf('\n') + 1;
    return end === 0 ? Verdict.NeedsMore : end;
  }
}

function inspect(settings: Partial<InspectionSettings> = {}) {
  const bytes = new Uint8Array(1000);
  const done: string[] = [];
  const clock = { monotonicMs: 1000 };
  const timers = new TimingWheel({
    nowMs: clock.monotonicMs,
    onError: (error) => {
      throw error;
    },
  });
  const transport = {
    clock,
    memory: { bytes },
    peek: (id: number, maxBytes: number) => void done.push(`${id} peeks ${maxBytes}`),
    take: (id: number, count: number) => void done.push(`${id} without ${count}`),
    close: (id: number) => void done.push(`${id} closed`),
  } as unknown as Transport;
  const counts: Record<string, number> = {};
  const count = (slot: number, by: number) => {
    const [name] = Object.entries(ListenerStats.at).find(([, at]) => at === slot)!;
    counts[name] = (counts[name] ?? 0) + by;
  };
  const stats = {
    increment: (slot: number) => count(slot, 1),
    decrement: (slot: number) => count(slot, -1),
  } as unknown as Scope;
  const filters = [new LineFilter(), new LineFilter()];
  const passed: InspectedSocket[] = [];
  const inspections = new Inspections(
    { filters, timeoutMs: 100, continuesOnTimeout: false, timers, ...settings },
    transport,
    stats,
    { onInspected: (socket) => void passed.push(socket) as undefined, onDropped: () => void done.push('dropped') },
  );
  const begin = (id: number): ConnectionHandler => inspections.begin(id, PEER)!;
  const show = (socket: ConnectionHandler, text: string) => {
    bytes.set(Buffer.from(text), 500);
    socket.onData(500, text.length);
  };
  const wait = (ms: number) => {
    clock.monotonicMs += ms;
    timers.advance(clock.monotonicMs);
  };
  return { begin, counts, done, filters, inspections, passed, show, wait };
}

t.test('each filter sees the bytes that earlier filters have not consumed', async (t) => {
  const { begin, counts, done, filters, passed, show, wait } = inspect();
  const socket = begin(3);
  show(socket, 'o');
  show(socket, 'one\n');
  t.same(filters[1]!.saw, [], 'a filter is not called without bytes');
  wait(50);
  show(socket, 'one\ntw');
  show(socket, 'one\ntwo!\nrest');
  t.same(filters[0]!.saw, ['o', 'one\n']);
  t.same(filters[1]!.saw, ['tw', 'two!\nrest']);
  t.same(done, ['3 peeks 16', '3 without 9']);
  t.same(passed, [socket]);
  t.equal(passed[0]!.startMonotonicMs, 1000, 'it started when it was accepted');
  wait(1000);
  t.same(counts, { downstream_pre_cx_active: 0 }, 'the timeout is cancelled');
});

t.test('any filter may refuse, and more bytes than all filters accept are refused', async (t) => {
  const { begin, counts, done, inspections, passed, show } = inspect();
  show(begin(3), 'one\n!');
  show(begin(4), 'one\nnever ends..');
  t.same(
    done.filter((what) => !what.includes('peeks')),
    ['dropped', '3 closed', 'dropped', '4 closed'],
  );
  t.same(passed, []);
  t.equal(inspections.count, 0);
  t.same(counts, { downstream_pre_cx_active: 0 });
});

t.test('one timeout covers all filters', async (t) => {
  const { begin, counts, done, inspections, show, wait } = inspect();
  const socket = begin(3);
  wait(99);
  show(socket, 'one\n');
  t.equal(inspections.count, 1);
  wait(2);
  t.same(done.slice(1), ['dropped', '3 closed']);
  t.same(counts, { downstream_pre_cx_active: 0, downstream_pre_cx_timeout: 1 });
});

t.test('a timeout of 0 is unlimited', async (t) => {
  const { begin, counts, inspections, wait } = inspect({ timeoutMs: 0 });
  begin(3);
  wait(24 * 3600 * 1000);
  t.equal(inspections.count, 1);
  t.same(counts, { downstream_pre_cx_active: 1 });
});

t.test('with continuesOnTimeout the connection gets all bytes that were not consumed', async (t) => {
  const { begin, done, passed, show, wait } = inspect({ continuesOnTimeout: true });
  const socket = begin(3);
  show(socket, 'one\ntw');
  wait(101);
  t.same(done.slice(1), ['3 without 4']);
  t.same(passed, [socket]);
});

t.test('each kind of end has its counter', async (t) => {
  const { begin, counts, done } = inspect();
  begin(3).onEnd();
  begin(4).onReset(104, 0);
  begin(5).onFault(new Error('a mistake'));
  t.same(
    done.filter((what) => what.includes('closed')),
    ['3 closed', '4 closed', '5 closed'],
  );
  t.same(counts, {
    downstream_pre_cx_active: 0,
    downstream_listener_filter_remote_close: 1,
    downstream_listener_filter_error: 2,
  });
});

t.test('all inspections end with their listener', async (t) => {
  const { begin, counts, done, inspections, wait } = inspect();
  for (const id of [3, 4, 5, 6]) begin(id);
  t.equal(inspections.count, 4);
  inspections.close();
  t.same(done.filter((what) => what.endsWith('closed')).sort(), ['3 closed', '4 closed', '5 closed', '6 closed']);
  t.equal(done.filter((what) => what === 'dropped').length, 4);
  t.equal(inspections.count, 0);
  wait(1000);
  t.same(counts, { downstream_pre_cx_active: 0 });
});

t.test('a filter that needs no bytes inspects a connection when it is accepted', async (t) => {
  const first: ListenerFilter = {
    maxBytes: 0,
    inspect(bytes, connection) {
      t.equal(bytes.length, 0);
      connection.local = PEER;
      return 0;
    },
  };
  const alone = inspect({ filters: [first] });
  alone.begin(3);
  t.equal(alone.inspections.count, 0);
  t.same(
    alone.passed.map(({ isLocalRestored, local }) => [isLocalRestored, local]),
    [[true, PEER]],
  );
  const { begin, passed, show } = inspect({ filters: [first, new LineFilter(), first] });
  const socket = begin(4);
  t.equal(passed.length, 0);
  show(socket, 'one\n');
  t.equal(passed.length, 1);
  const refused = inspect({ filters: [{ maxBytes: 0, inspect: () => Verdict.Refuses }] });
  refused.begin(5);
  t.equal(refused.inspections.count, 0);
  t.equal(refused.passed.length, 0);
});
