// A server with few descriptors, started by the test of their exhaustion; it tells its parent what happens to it.

import { closeSync, openSync } from 'node:fs';
import { Event, Op } from '../../src/io/shim.js';
import { loopback, Rig } from './harness.js';

/** What the server tells. */
export type StarvedMessage =
  | { what: 'listening'; port: number }
  | { what: 'accepted'; count: number }
  | { what: 'failed'; errno: number }
  | { what: 'cpu'; usedMs: number; elapsedMs: number };

const tell = (message: StarvedMessage) => process.send!(message);
const spare = Array.from({ length: 8 }, () => openSync('/dev/null', 'r'));
const rig = new Rig({ unlogged: true });
let accepted = 0;
rig.onEvent = (event) => {
  if (event.kind === Event.Accept) tell({ what: 'accepted', count: ++accepted });
  if (event.kind === Event.AcceptFailed) tell({ what: 'failed', errno: event.value });
  if (event.kind === Event.End || event.kind === Event.Reset) rig.submit(Op.Close, event.id);
};
const { port } = rig.listen(loopback);
tell({ what: 'listening', port });

process.on('message', (message) => {
  if (message === 'free') for (const fd of spare.splice(0)) closeSync(fd);
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
