// How many bytes connections hold back in each direction, summed up by what the bytes are counted for.

/** A pair of gauges of which a connection's bytes are a part. */
export interface BufferedGauges {
  set(at: number, value: number): void;
}

interface Sums {
  readonly receivedAt: number;
  readonly sentAt: number;
  received: number;
  sent: number;
}

/** One thread's sums, gathered in rounds in which each of its connections is asked once. */
export class BufferedBytes {
  /** Gauges that were ever above 0, with what they are now. */
  readonly #sums = new Map<BufferedGauges, Sums>();

  /** The round is over: sets the gauges, and begins with nothing. */
  finishRound(): void {
    for (const [gauges, sums] of this.#sums) {
      gauges.set(sums.receivedAt, sums.received);
      gauges.set(sums.sentAt, sums.sent);
      if (sums.received === 0 && sums.sent === 0) this.#sums.delete(gauges);
      sums.received = sums.sent = 0;
    }
  }

  /** One connection: bytes that were received and wait here, and bytes that the kernel has not taken yet. */
  add(gauges: BufferedGauges, receivedAt: number, received: number, sentAt: number, sent: number): void {
    if (received === 0 && sent === 0) return;
    const sums = this.#sums.get(gauges);
    if (sums === undefined) this.#sums.set(gauges, { receivedAt, sentAt, received, sent });
    else {
      sums.received += received;
      sums.sent += sent;
    }
  }
}
