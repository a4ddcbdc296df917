// A thread that never returns from its first message, behind which other messages bring descriptors.

import { closeSync, openSync } from 'node:fs';
import { parentPort, workerData } from 'node:worker_threads';
import { shim } from './harness.js';

const fd = openSync(workerData as string, 'r');
const [own, other] = shim.socketPair();
const sender = shim.watchMessages(own, { onMessage() {}, onWritable() {}, onEnd() {} });
shim.watchMessages(other, {
  onMessage() {
    parentPort!.postMessage('stuck');
    for (;;);
  },
  onWritable() {},
  onEnd() {},
});
sender.send(Buffer.from('first'), []);
for (let count = 0; count < 5; count++) sender.send(Buffer.from('behind it'), [fd, fd]);
closeSync(fd);
