// A server with few descriptors, started by the tests of their exhaustion; its arguments are the reserve, and whether each
// listener has a separate transport. It reports its events to its parent.

import { closeSync, openSync } from 'node:fs';
import { Event, Op } from '../../../src/io/shim.js';
import { loopback, Rig, type RigOptions } from './harness.js';

/** Messages of the server. */
export type StarvedMessage =
  | { what: 'listening'; ports: [number, number] }
  | { what: 'accepted'; count: number; port: number }
  | { what: 'dropped' }
  | { what: 'connected' }
  | { what: 'reset'; errno: number }
  | { what: 'failed'; errno: number }
  | { what: 'starved'; is: boolean }
  | { what: 'cpu'; usedMs: number; elapsedMs: number };

const report = (message: StarvedMessage) => process.send!(message);
const spare = Array.from({ length: 8 }, () => openSync('/dev/null', 'r'));
const options: RigOptions = { unlogged: true, reserve: Number(process.argv[2] ?? 0) };
const rig = new Rig(options);
const other = process.argv[3] === 'apart' ? new Rig(options) : rig;
const first = rig.listen(loopback);
const second = other.listen(loopback);
const connections: number[] = [];
let accepted = 0;
rig.onEvent = other.onEvent = (event, from) => {
  if (event.kind === Event.Accept) {
    if (from === rig) connections.push(event.id);
    const { port } = from === other && event.listener === second.id ? second : first;
    report({ what: 'accepted', count: ++accepted, port });
  }
  if (event.kind === Event.Connected) report({ what: 'connected' });
  if (event.kind === Event.Reset) report({ what: 'reset', errno: event.value });
  if (event.kind === Event.AcceptFailed) report({ what: 'failed', errno: event.value });
  if (event.kind === Event.End || event.kind === Event.Reset) from.submit(Op.Close, event.id);
};
report({ what: 'listening', ports: [first.port, second.port] });

process.on('message', (message) => {
  if (message === 'free') for (const fd of spare.splice(0)) closeSync(fd);
  if (message === 'drop') {
    rig.now(Op.Close, connections.shift()!);
    report({ what: 'dropped' });
  }
  if (message === 'stop') other.transport.setAccepting(second.id, false);
  if (message === 'connect') rig.connect(first.address);
  if (message === 'starved?') report({ what: 'starved', is: rig.transport.isStarved() });
  if (message === 'measure') {
    const cpu = process.cpuUsage();
    const from = performance.now();
    setTimeout(() => {
      const used = process.cpuUsage(cpu);
      report({ what: 'cpu', usedMs: (used.user + used.system) / 1000, elapsedMs: performance.now() - from });
    }, 500);
  }
  if (message === 'end') {
    rig.close();
    other.close();
    process.disconnect();
  }
});
