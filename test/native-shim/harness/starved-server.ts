// A server with few descriptors, started by the tests of their exhaustion, which may tell it how many to leave to others, and to
// have a transport for each of its listeners; it tells its parent what happens to it.

import { closeSync, openSync } from 'node:fs';
import { Event, Op } from '../../../src/io/shim.js';
import { loopback, Rig, type RigOptions } from './harness.js';

/** What the server tells. */
export type StarvedMessage =
  | { what: 'listening'; ports: [number, number] }
  | { what: 'accepted'; count: number; port: number }
  | { what: 'dropped' }
  | { what: 'connected' }
  | { what: 'reset'; errno: number }
  | { what: 'failed'; errno: number }
  | { what: 'starved'; is: boolean }
  | { what: 'cpu'; usedMs: number; elapsedMs: number };

const tell = (message: StarvedMessage) => process.send!(message);
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
    tell({ what: 'accepted', count: ++accepted, port });
  }
  if (event.kind === Event.Connected) tell({ what: 'connected' });
  if (event.kind === Event.Reset) tell({ what: 'reset', errno: event.value });
  if (event.kind === Event.AcceptFailed) tell({ what: 'failed', errno: event.value });
  if (event.kind === Event.End || event.kind === Event.Reset) from.submit(Op.Close, event.id);
};
tell({ what: 'listening', ports: [first.port, second.port] });

process.on('message', (message) => {
  if (message === 'free') for (const fd of spare.splice(0)) closeSync(fd);
  if (message === 'drop') {
    rig.now(Op.Close, connections.shift()!);
    tell({ what: 'dropped' });
  }
  if (message === 'stop') other.transport.setAccepting(second.id, false);
  if (message === 'connect') rig.connect(first.address);
  if (message === 'starved?') tell({ what: 'starved', is: rig.transport.isStarved() });
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
    other.close();
    process.disconnect();
  }
});
