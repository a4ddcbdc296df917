// The keys of session tickets of all contexts that have none of their own. They are replaced every 12 hours; the previous ones
// still decrypt.

import { randomBytes } from 'node:crypto';
import type { NativeShim } from '../io/shim.js';

const KEY_BYTES = 80;
const ROTATION_MS = 12 * 3_600_000;

export class SharedTicketKeys {
  readonly #shim: NativeShim;
  /** The newest first; undefined: no server needs any. */
  #keys: Buffer | undefined;

  constructor(shim: NativeShim) {
    this.#shim = shim;
  }

  /** Creates the keys for the first server that needs them. */
  require(): void {
    if (this.#keys !== undefined) return;
    this.#rotate();
    setInterval(() => this.#rotate(), ROTATION_MS).unref();
  }

  #rotate(): void {
    const previous = this.#keys?.subarray(0, KEY_BYTES) ?? Buffer.alloc(0);
    this.#keys = Buffer.concat([randomBytes(KEY_BYTES), previous]);
    this.#shim.setTicketKeys(this.#keys);
  }
}
