// Sums up the bytes that connections buffer in each direction, by the gauges that count them.

/** Gauges that include a connection's bytes. */
export interface BufferedGauges {
  set(at: number, value: number): void;
}

interface Sums {
  readonly receivedAt: number;
  readonly sentAt: number;
  received: number;
  sent: number;
}

/** The sums of one thread. They are collected in rounds, in which each connection adds its bytes once. */
export class BufferedBytes {
  /** Gauges that are or were above 0 in the last round, with their sums. */
  readonly #sums = new Map<BufferedGauges, Sums>();

  /** Ends a round: sets the gauges and resets the sums. */
  finishRound(): void {
    for (const [gauges, sums] of this.#sums) {
      gauges.set(sums.receivedAt, sums.received);
      gauges.set(sums.sentAt, sums.sent);
      if (sums.received === 0 && sums.sent === 0) this.#sums.delete(gauges);
      sums.received = sums.sent = 0;
    }
  }

  /** Adds one connection's bytes: received ones that are buffered here, and unsent ones that the kernel has not accepted yet. */
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
