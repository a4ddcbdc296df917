// A server with few descriptors, started by the tests of their exhaustion, which may tell it how many to leave to others; it tells
// its parent what happens to it.

import { closeSync, openSync } from 'node:fs';
import { Event, Op } from '../../src/io/shim.js';
import { loopback, Rig } from './harness.js';

/** What the server tells. */
export type StarvedMessage =
  | { what: 'listening'; ports: [number, number] }
  | { what: 'accepted'; count: number; port: number }
  | { what: 'connected' }
  | { what: 'reset'; errno: number }
  | { what: 'failed'; errno: number }
  | { what: 'cpu'; usedMs: number; elapsedMs: number };

const tell = (message: StarvedMessage) => process.send!(message);
const spare = Array.from({ length: 8 }, () => openSync('/dev/null', 'r'));
const rig = new Rig({ unlogged: true, reserve: Number(process.argv[2] ?? 0) });
const first = rig.listen(loopback);
const second = rig.listen(loopback);
const connections: number[] = [];
let accepted = 0;
rig.onEvent = (event) => {
  if (event.kind === Event.Accept) {
    connections.push(event.id);
    tell({ what: 'accepted', count: ++accepted, port: (event.listener === first.id ? first : second).port });
  }
  if (event.kind === Event.Connected) tell({ what: 'connected' });
  if (event.kind === Event.Reset) tell({ what: 'reset', errno: event.value });
  if (event.kind === Event.AcceptFailed) tell({ what: 'failed', errno: event.value });
  if (event.kind === Event.End || event.kind === Event.Reset) rig.submit(Op.Close, event.id);
};
tell({ what: 'listening', ports: [first.port, second.port] });

process.on('message', (message) => {
  if (message === 'free') for (const fd of spare.splice(0)) closeSync(fd);
  if (message === 'drop') rig.now(Op.Close, connections.shift()!);
  if (message === 'connect') rig.connect(first.address);
  if (message === 'measure') {
    const cpu = process.cpuUsage();
    const from = performance.now();
    setTimeout(() => {
      const used = process.cpuUsage(cpu);
      tell({ what: 'cpu', usedMs: (used.user + used.system) / 1000, elapsedMs: performance.now() - from });
    }, 500);
  }
  if (message === 'end') {
    rig.close();
    process.disconnect();
  }
});
