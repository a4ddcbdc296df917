// The short-lived thread that reads modules: it keeps the TypeScript parser and the first evaluation of modules out of the threads
// that serve.

import { isMainThread, parentPort, workerData } from 'node:worker_threads';
import { checkUses, readScript } from './read-script.js';
import type { ReadScript, ScriptTask } from './task.js';

async function readAll({ sources, uses }: ScriptTask): Promise<ReadScript[]> {
  const read: ReadScript[] = [];
  for (const source of sources) {
    const own = uses.filter(({ module }) => module === source.name);
    read.push(await ('files' in source ? checkUses(source, own) : readScript(source, own)));
  }
  return read;
}

if (isMainThread || parentPort === null) throw new Error('this file is the entry of a thread');
const port = parentPort;
void readAll(workerData as ScriptTask).then((read) => {
  port.postMessage(read);
  // Timers and sockets of the modules would keep the thread alive.
  process.exit();
});
