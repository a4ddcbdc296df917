// The short-lived thread that reads modules: TypeScript's parser and the users' first evaluation stay out of the serving threads.

import { isMainThread, parentPort, workerData } from 'node:worker_threads';
import { readScript } from './read-script.js';
import type { ReadScript, ScriptTask } from './task.js';

async function readAll({ sources, uses }: ScriptTask): Promise<ReadScript[]> {
  const read: ReadScript[] = [];
  for (const source of sources) {
    const own = uses.filter(({ module }) => module === source.name);
    read.push(await readScript(source, own));
  }
  return read;
}

if (isMainThread || parentPort === null) throw new Error('this file is the entry of a thread');
const port = parentPort;
void readAll(workerData as ScriptTask).then((read) => {
  port.postMessage(read);
  // Timers and sockets that the modules have opened would keep the thread.
  process.exit();
});
