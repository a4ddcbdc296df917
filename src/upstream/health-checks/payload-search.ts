// Searches a host's data for payloads in this order, with anything between them. No I/O.
//
// The search of Knuth, Morris and Pratt: it takes as much time as there are bytes, however they are divided and whatever they repeat.

export class PayloadSearch {
  readonly #payloads: readonly Buffer[];
  /** Index of the next payload. */
  #next = 0;
  /** Bytes of the next payload that the last bytes match. */
  #matched = 0;
  /** The borders of the next payload. See bordersOf(). */
  #borders: Uint32Array;

  /** No payload may be empty. */
  constructor(payloads: readonly Buffer[]) {
    this.#payloads = payloads;
    this.#borders = bordersOf(payloads[0]);
  }

  /** Searches further bytes. Returns whether all payloads have been found. */
  take(bytes: Uint8Array): boolean {
    let payload = this.#payloads[this.#next];
    let borders = this.#borders;
    let matched = this.#matched;
    for (let at = 0; at < bytes.length && payload !== undefined; at++) {
      const byte = bytes[at];
      while (matched > 0 && payload[matched] !== byte) matched = borders[matched - 1]!;
      if (payload[matched] === byte) matched++;
      if (matched < payload.length) continue;
      payload = this.#payloads[++this.#next];
      borders = this.#borders = bordersOf(payload);
      matched = 0;
    }
    this.#matched = matched;
    return payload === undefined;
  }
}

/** Returns, for each beginning of the payload, the length of the longest shorter beginning with which it ends. */
function bordersOf(payload: Uint8Array = new Uint8Array(0)): Uint32Array {
  const borders = new Uint32Array(payload.length);
  let length = 0;
  for (let at = 1; at < payload.length; at++) {
    while (length > 0 && payload[length] !== payload[at]) length = borders[length - 1]!;
    if (payload[length] === payload[at]) length++;
    borders[at] = length;
  }
  return borders;
}
