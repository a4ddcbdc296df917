// A thread that echoes on the listening socket it is given, and reports its counters on request.

import { parentPort, workerData } from 'node:worker_threads';
import { Event, Op } from '../../../src/io/shim.js';
import { Rig, shim } from './harness.js';

/** The start data of the thread. */
export interface EchoWorkerData {
  fd: number;
  contended: boolean;
}

const { fd, contended } = workerData as EchoWorkerData;
const rig = new Rig({ unlogged: true, uncopied: true });
let accepted = 0;
rig.onEvent = (event) => {
  if (event.kind === Event.Accept) accepted++;
  if (event.kind === Event.Data) {
    rig.submit(Op.Send, event.id, event.bytes.byteOffset - rig.memory.byteOffset, event.bytes.length);
  }
  if (event.kind === Event.End || event.kind === Event.Reset) rig.submit(Op.Close, event.id, 1000, 0);
};
rig.transport.addListener(fd, contended, 0);
parentPort!.on('message', (message: string) => {
  if (message === 'accepted') parentPort!.postMessage({ accepted, thread: shim.threadId() });
  if (message === 'close') {
    rig.close();
    parentPort!.close();
  }
});
parentPort!.postMessage('ready');
