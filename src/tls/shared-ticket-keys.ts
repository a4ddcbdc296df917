// The keys of session tickets of all contexts that have none of their own. They are replaced every 12 hours; the previous ones
// still decrypt. In a hot restart they pass to the next process, so that its clients resume their sessions.

import { randomBytes } from 'node:crypto';
import type { NativeShim } from '../io/shim.js';
import { monotonicMs } from '../io/time/timer-driver.js';

export const TICKET_KEY_BYTES = 80;
/** The current key and the previous one. */
export const MAX_TICKET_KEYS = 2;
const ROTATION_MS = 12 * 3_600_000;

export interface TicketKeys {
  /** Keys of TICKET_KEY_BYTES each, the newest first; at most MAX_TICKET_KEYS. */
  readonly keys: Uint8Array;
  /** When the newest was made: monotonicMs(), whose clock the processes of a machine share. */
  readonly madeMs: number;
}

export class SharedTicketKeys {
  readonly #shim: NativeShim;
  /** Those of the parent process until a server needs keys. */
  #inherited: TicketKeys | undefined;
  /** Undefined: no server needs any. */
  #current: TicketKeys | undefined;

  constructor(shim: NativeShim, inherited: TicketKeys | undefined) {
    this.#shim = shim;
    this.#inherited = inherited;
  }

  /** For a child process; undefined without keys. */
  get current(): TicketKeys | undefined {
    return this.#current ?? this.#inherited;
  }

  /** Makes the keys for the first server that needs them, or takes those of the parent process. */
  require(): void {
    if (this.#current !== undefined) return;
    if (this.#inherited === undefined) return this.#rotate();
    this.#use(this.#inherited);
    this.#inherited = undefined;
  }

  #rotate(): void {
    const previous = this.#current?.keys.subarray(0, TICKET_KEY_BYTES) ?? new Uint8Array();
    this.#use({ keys: Buffer.concat([randomBytes(TICKET_KEY_BYTES), previous]), madeMs: monotonicMs() });
  }

  #use(keys: TicketKeys): void {
    this.#current = keys;
    this.#shim.setTicketKeys(keys.keys);
    // However often processes restart, a key is replaced when it is old enough.
    const leftMs = Math.min(Math.max(keys.madeMs + ROTATION_MS - monotonicMs(), 0), ROTATION_MS);
    setTimeout(() => this.#rotate(), leftMs).unref();
  }
}
