// A flush of any size passes through a socket that accepts little at a time.

import t from 'tap';
import { nextTurn } from '../../../src/common/time/next-turn.js';
import { Condition } from '../../../src/extensions/stat-sinks/condition.js';
import { DatagramWriter } from '../../../src/extensions/stat-sinks/lines/datagram-writer.js';
import { plainLines } from '../../../src/extensions/stat-sinks/lines/line-format.js';
import { LineSink } from '../../../src/extensions/stat-sinks/lines/line-sink.js';
import { UdpSocket } from '../../../src/extensions/stat-sinks/lines/udp-socket.js';
import { CounterLatches } from '../../../src/stats/flush/counter-latches.js';
import { FlushedStats } from '../../../src/stats/flush/flushed-stats.js';
import { ListenerStats } from '../../../src/stats/layouts/listener.js';
import { StatsStore } from '../../../src/stats/store.js';
import { captureLog } from '../../admin/capture-log.js';
import { waitFor } from '../../e2e/harness/wait-for.js';
import { startUdpPeer } from '../../e2e/stats-sinks/line-peers.js';

const LISTENERS = 9000;

t.test('UDP: no line is dropped before it is sent, regardless of how fast lines are produced', async (t) => {
  const log = captureLog(t);
  const peer = await startUdpPeer(t);
  const socket = new UdpSocket('127.0.0.1', peer.port, new Condition('the receiver'));
  const sink = new LineSink(plainLines('edge'), new DatagramWriter(socket, 0));
  for (const step of sink.flush(flushOf(LISTENERS))) {
    if (step === undefined) continue;
    await step;
    // Lets the receiver run, which is in this thread.
    await nextTurn();
  }
  await sink.close();
  await waitFor(() => peer.lines.all.includes('edge.listener.l0.downstream_cx_active:1|g'));
  t.equal(log.text(), '');
});

t.test('UDP: an unreachable receiver is reported like any other failure', async (t) => {
  const log = captureLog(t);
  // The kernel refuses broadcasts from a socket without SO_BROADCAST.
  const socket = new UdpSocket('255.255.255.255', 9, new Condition('the receiver'));
  const sink = new LineSink(plainLines('edge'), new DatagramWriter(socket, 0));
  for (let flush = 0; flush < 2; flush++) {
    for (const step of sink.flush(flushOf(1))) await step;
    await waitFor(() => log.text().includes('the receiver accepts no stats'));
  }
  t.match(log.text(), /the receiver accepts no stats: .*EACCES/);
  await sink.close();
});

/** A flush with one gauge per listener. */
function flushOf(listeners: number): FlushedStats {
  const store = new StatsStore({ workers: 1 });
  for (let i = 0; i < listeners; i++) {
    store.scope(store.addScope(`listener.l${i}.`, ListenerStats)).add(ListenerStats.at.downstream_cx_active, 1);
  }
  const reader = store.reader();
  const latches = new CounterLatches();
  for (const _ of latches.latch(reader, reader.sections, []));
  return new FlushedStats(reader, reader.sections, latches, { countedSinceMs: 0, startMs: 0, previousMs: 0, nowMs: 0 });
}
