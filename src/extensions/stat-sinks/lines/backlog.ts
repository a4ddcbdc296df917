// What waits at a datagram socket for the kernel or the receiver: so much and no more, and a flush waits a moment for room.

/** Of memory, for what a receiver that does not read may cost. */
const MAX_BYTES = 2 * 1024 * 1024;
/** What a datagram takes beside its bytes. */
const OVERHEAD = 256;
/** A flush goes on below this. The rest is for what it makes between two looks: the histograms of a cluster are 2,000 lines. */
const MANY_BYTES = 64 * 1024;
/** How long a flush may wait in all. */
const PATIENCE_MS = 1000;

export class Backlog {
  #bytes = 0;
  #patienceMs = PATIENCE_MS;
  /** Something was taken since the last flush began. */
  #isTaken = true;
  /** Somebody waits until no more than this is left. */
  #awaitedBytes = 0;
  #wake: (() => void) | undefined;

  /** A flush begins. It waits for nobody who has taken nothing since the one before. */
  begin(): void {
    this.#patienceMs = this.#isTaken || this.#bytes === 0 ? PATIENCE_MS : 0;
    this.#isTaken = false;
  }

  /** A datagram is to wait; false when there is no room for it. */
  add(datagram: Buffer): boolean {
    if (this.#bytes + datagram.length + OVERHEAD > MAX_BYTES) return false;
    this.#bytes += datagram.length + OVERHEAD;
    return true;
  }

  /** A datagram that was added has gone. */
  remove(datagram: Buffer): void {
    this.#bytes -= datagram.length + OVERHEAD;
    this.#isTaken = true;
    if (this.#bytes <= this.#awaitedBytes) this.#wake?.();
  }

  /** All that waited is lost. */
  clear(): void {
    this.#bytes = 0;
    this.#wake?.();
  }

  /** Undefined when there is room. Otherwise resolves when there is again, or the flush has waited long enough. */
  room(): Promise<void> | undefined {
    return this.#left(MANY_BYTES);
  }

  /** The same until nothing waits. */
  drained(): Promise<void> | undefined {
    return this.#left(0);
  }

  #left(bytes: number): Promise<void> | undefined {
    if (this.#bytes <= bytes || this.#patienceMs <= 0) return undefined;
    this.#awaitedBytes = bytes;
    return new Promise((resolve) => {
      const sinceMs = performance.now();
      const wake = () => {
        clearTimeout(timer);
        this.#wake = undefined;
        this.#patienceMs -= performance.now() - sinceMs;
        resolve();
      };
      const timer = setTimeout(wake, this.#patienceMs);
      this.#wake = wake;
    });
  }
}
