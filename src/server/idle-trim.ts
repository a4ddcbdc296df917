// Returns memory that the C library has kept to the kernel, when the process becomes idle. V8's compilers, the garbage collector and TLS
// handshakes use and free much of it: 6 MB remained after the first 2,000 connections.

import type { NativeShim } from '../io/shim.js';

const STEP_MS = 5000;
/** The process is idle if its threads have used less than this share of one core since the last step. */
const IDLE_SHARE = 0.1;
/** CPU time since the last trim that makes another one worthwhile. */
const WORK_MS = 500;

export interface IdleTrimContext {
  readonly shim: Pick<NativeShim, 'trimMemory'>;
  /** Returns the CPU time of all threads. */
  cpuMs(): number;
}

export class IdleTrim {
  readonly #context: IdleTrimContext;
  readonly #timer: NodeJS.Timeout;
  #lastMs: number;
  #trimmedMs: number;

  /** The memory was trimmed just now. */
  constructor(context: IdleTrimContext) {
    this.#context = context;
    this.#lastMs = context.cpuMs();
    this.#trimmedMs = this.#lastMs;
    this.#timer = setInterval(() => this.step(), STEP_MS).unref();
  }

  close(): void {
    clearInterval(this.#timer);
  }

  /** Called every STEP_MS. Trimming takes locks that busy threads would wait for. */
  step(): void {
    const now = this.#context.cpuMs();
    const isIdle = now - this.#lastMs < STEP_MS * IDLE_SHARE;
    this.#lastMs = now;
    if (!isIdle || now - this.#trimmedMs < WORK_MS) return;
    this.#context.shim.trimMemory();
    this.#trimmedMs = now;
  }
}

/** Returns the CPU time of the process, in milliseconds. */
export function processCpuMs(): number {
  const { system, user } = process.cpuUsage();
  return (system + user) / 1000;
}
