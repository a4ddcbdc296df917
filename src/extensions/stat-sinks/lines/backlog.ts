// The bounded backlog of a datagram socket: datagrams that wait for the kernel or the receiver. A flush waits a limited time for
// room in it.

/** Maximum memory for a receiver that does not read. */
const MAX_BYTES = 2 * 1024 * 1024;
/** Memory of a datagram in addition to its bytes. */
const OVERHEAD = 256;
/** A flush continues below this. The rest is for the output between two checks: the histograms of a cluster are 2,000 lines. */
const RESUME_BYTES = 64 * 1024;
/** Maximum time that a flush waits in total. */
const MAX_WAIT_MS = 1000;

export class Backlog {
  #bytes = 0;
  #waitLeftMs = MAX_WAIT_MS;
  /** A datagram was sent since the last flush began. */
  #hasProgress = true;
  /** The pending wait ends when no more bytes than this are left. */
  #wakeAtBytes = 0;
  #wake: (() => void) | undefined;

  /** Called when a flush begins. It does not wait if nothing was sent since the previous one. */
  begin(): void {
    this.#waitLeftMs = this.#hasProgress || this.#bytes === 0 ? MAX_WAIT_MS : 0;
    this.#hasProgress = false;
  }

  /** Adds a datagram. Returns false if there is no room for it. */
  add(datagram: Buffer): boolean {
    if (this.#bytes + datagram.length + OVERHEAD > MAX_BYTES) return false;
    this.#bytes += datagram.length + OVERHEAD;
    return true;
  }

  /** Called when an added datagram was sent. */
  remove(datagram: Buffer): void {
    this.#bytes -= datagram.length + OVERHEAD;
    this.#hasProgress = true;
    if (this.#bytes <= this.#wakeAtBytes) this.#wake?.();
  }

  /** Called when all added datagrams are lost. */
  clear(): void {
    this.#bytes = 0;
    this.#wake?.();
  }

  /**
   * Returns undefined if there is room. Otherwise returns a promise that resolves when there is, or when the flush has waited
   * long enough.
   */
  room(): Promise<void> | undefined {
    return this.#waitForBytes(RESUME_BYTES);
  }

  /** Does the same as room(), but waits until the backlog is empty. */
  drained(): Promise<void> | undefined {
    return this.#waitForBytes(0);
  }

  #waitForBytes(bytes: number): Promise<void> | undefined {
    if (this.#bytes <= bytes || this.#waitLeftMs <= 0) return undefined;
    this.#wakeAtBytes = bytes;
    return new Promise((resolve) => {
      const sinceMs = performance.now();
      const wake = () => {
        clearTimeout(timer);
        this.#wake = undefined;
        this.#waitLeftMs -= performance.now() - sinceMs;
        resolve();
      };
      const timer = setTimeout(wake, this.#waitLeftMs);
      this.#wake = wake;
    });
  }
}
