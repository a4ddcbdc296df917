// Loaded into Baton before itself (--import): breaks it on command, in ways that a defect would.
//
// A file that appears in the directory BATON_TEST_FAULTS, named by what shall happen, is taken by one worker thread, which
// then dies. Bytes that hold MARKER make the call that sends them throw, which is a defect in the handling of one connection.

import { renameSync } from 'node:fs';
import { join } from 'node:path';
import { isMainThread } from 'node:worker_threads';
import { Transport } from '../../../src/io/transport.js';

export type Death = 'throw' | 'reject' | 'exit' | 'exhaust-memory';

const MARKER = Buffer.from('BOOM');
const POLL_MS = 10;

const DEATHS: Record<Death, () => void> = {
  throw: () => {
    throw new Error('injected exception');
  },
  reject: () => {
    void Promise.reject(new Error('injected rejection'));
  },
  exit: () => process.exit(3),
  'exhaust-memory': () => {
    const kept: string[][] = [];
    for (;;) kept.push(new Array<string>(100_000).fill('x'));
  },
};

/** Other threads, which answer questions, are no workers. */
let accepts = false;

if (!isMainThread) {
  breakSending();
  noteAccepting();
  setInterval(obey, POLL_MS).unref();
}

function obey(): void {
  if (!accepts) return;
  for (const [name, die] of Object.entries(DEATHS)) {
    if (isTaken(name)) setImmediate(die);
  }
}

/** Whoever renames the file has taken the command. */
function isTaken(name: string): boolean {
  const path = join(process.env.BATON_TEST_FAULTS!, name);
  try {
    renameSync(path, `${path}.taken`);
    return true;
  } catch {
    return false;
  }
}

function breakSending(): void {
  const { send } = Transport.prototype;
  Transport.prototype.send = function (this: Transport, id: number, offset: number, length: number): void {
    if (Buffer.from(this.memory.bytes.buffer, offset, length).includes(MARKER)) throw new Error('injected fault');
    send.call(this, id, offset, length);
  };
}

function noteAccepting(): void {
  const { addListener } = Transport.prototype;
  Transport.prototype.addListener = function (this: Transport, ...args: Parameters<typeof addListener>): number {
    accepts = true;
    return addListener.apply(this, args);
  };
}
