// Loaded into Baton before its own code (--import): injects faults on command, as a defect would cause them.
//
// A file that appears in the directory BATON_TEST_FAULTS, named by the fault, is claimed by one worker thread, which then dies.
// Bytes that contain MARKER make the call that sends them, or that connects to them, throw: a defect in the handling of one
// connection. Bytes that contain FUSE make the close of their connection throw, when it checks for pending bytes.

import { renameSync } from 'node:fs';
import { join } from 'node:path';
import { isMainThread } from 'node:worker_threads';
import { Transport } from '../../../../src/io/transport/transport.js';
import { ConnectionLimit } from '../../../../src/listener/connection-limit.js';

export type Death = 'throw' | 'exit' | 'exhaust-memory';
/** Exceptions that a worker survives. */
export type Stray = 'stray-immediate' | 'stray-timer' | 'stray-message' | 'stray-promise';

const MARKER = Buffer.from('BOOM');
const FUSE = Buffer.from('FUSE');
const POLL_MS = 10;

const DEATHS: Record<Death | Stray, () => void> = {
  throw: () => {
    // A worker does not survive this exception, unlike others.
    throw Object.assign(new Error('injected exception'), { code: 'ERR_MEMORY_ALLOCATION_FAILED' });
  },
  exit: () => process.exit(3),
  'stray-immediate': fail,
  'stray-timer': () => void setTimeout(fail, 1),
  'stray-message': () => {
    const { update } = ConnectionLimit.prototype;
    ConnectionLimit.prototype.update = () => {
      ConnectionLimit.prototype.update = update;
      fail();
    };
  },
  'stray-promise': () => void Promise.reject(new Error('injected exception')),
  'exhaust-memory': () => {
    const kept: string[][] = [];
    for (;;) kept.push(new Array<string>(100_000).fill('x'));
  },
};

/** Other threads, which answer requests, are not workers. */
let accepts = false;

if (!isMainThread) {
  breakSending();
  breakConnecting();
  noteAccepting();
  setInterval(executeCommands, POLL_MS).unref();
}

function executeCommands(): void {
  if (!accepts) return;
  for (const [name, die] of Object.entries(DEATHS)) {
    if (claims(name)) setImmediate(die);
  }
}

function fail(): never {
  throw new Error('injected exception');
}

/** The thread that renames the file has claimed the command. */
function claims(name: string): boolean {
  const path = join(process.env.BATON_TEST_FAULTS!, name);
  try {
    renameSync(path, `${path}.taken`);
    return true;
  } catch {
    return false;
  }
}

function breakSending(): void {
  const { addBuffered, pendingBytes, send } = Transport.prototype;
  const fused = new Set<number>();
  let isSampling = false;
  Transport.prototype.send = function (this: Transport, id: number, offset: number, length: number): void {
    const bytes = Buffer.from(this.memory.bytes.buffer, offset, length);
    if (bytes.includes(MARKER)) throw new Error('injected fault');
    if (bytes.includes(FUSE)) fused.add(id);
    send.call(this, id, offset, length);
  };
  Transport.prototype.pendingBytes = function (this: Transport, id: number): number {
    if (!isSampling && fused.delete(id)) throw new Error('injected fault');
    return pendingBytes.call(this, id);
  };
  Transport.prototype.addBuffered = function (this: Transport, ...args: Parameters<typeof addBuffered>): number {
    isSampling = true;
    const next = addBuffered.apply(this, args);
    isSampling = false;
    return next;
  };
}

function breakConnecting(): void {
  const { connect } = Transport.prototype;
  Transport.prototype.connect = function (this: Transport, ...args: Parameters<typeof connect>): number {
    if (Buffer.from(args[0]).includes(MARKER)) throw new Error('injected fault');
    return connect.apply(this, args);
  };
}

function noteAccepting(): void {
  const { addListener } = Transport.prototype;
  Transport.prototype.addListener = function (this: Transport, ...args: Parameters<typeof addListener>): number {
    accepts = true;
    return addListener.apply(this, args);
  };
}
