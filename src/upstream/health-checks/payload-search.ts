// Looks in what a host sends for texts that are to come in this order, with anything between them. No I/O.

export class PayloadSearch {
  readonly #payloads: readonly Buffer[];
  /** The next one that is looked for. */
  #next = 0;
  /** What has come and may be its beginning. */
  #rest: Buffer = EMPTY;

  /** None of the payloads is empty. */
  constructor(payloads: readonly Buffer[]) {
    this.#payloads = payloads;
  }

  /** Takes what has come; returns whether all have been found. Keeps less than the length of one payload. */
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
