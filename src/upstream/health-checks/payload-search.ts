// Searches a host's data for payloads in this order, with anything between them. No I/O.

export class PayloadSearch {
  readonly #payloads: readonly Buffer[];
  /** Index of the next payload. */
  #next = 0;
  /** Received bytes that may be the beginning of the next payload. */
  #rest: Buffer = EMPTY;

  /** No payload may be empty. */
  constructor(payloads: readonly Buffer[]) {
    this.#payloads = payloads;
  }

  /** Searches further bytes. Returns whether all payloads have been found. Keeps fewer bytes than the next payload has. */
  take(bytes: Uint8Array): boolean {
    let rest = Buffer.concat([this.#rest, bytes]);
    while (this.#next < this.#payloads.length) {
      const payload = this.#payloads[this.#next]!;
      const at = rest.indexOf(payload);
      if (at < 0) {
        this.#rest = rest.subarray(Math.max(0, rest.length - payload.length + 1));
        return false;
      }
      rest = rest.subarray(at + payload.length);
      this.#next++;
    }
    return true;
  }
}

const EMPTY = Buffer.alloc(0);
