// Connections that wait for room in an arena, the first one first, with what they have received outside of it.

export interface RoomWaiter {
  /** Called when there is room again. The waiter is no longer in the queue. */
  onRoom(): void;
}

export class RoomQueue {
  /** Bytes that all waiters together may have. */
  readonly #most: number;
  readonly #waiters = new Map<RoomWaiter, number>();
  #bytes = 0;
  #total = 0;

  constructor(most: number) {
    this.#most = most;
  }

  get isEmpty(): boolean {
    return this.#waiters.size === 0;
  }

  /** How many have begun to wait. */
  get total(): number {
    return this.#total;
  }

  /** Puts a waiter at the end, with `bytes` of its own. Returns false when the queue is full. */
  add(waiter: RoomWaiter, bytes: number): boolean {
    if (this.#bytes + bytes > this.#most) return false;
    this.#waiters.set(waiter, bytes);
    this.#bytes += bytes;
    this.#total++;
    return true;
  }

  /** Takes a waiter out that waits no longer. No-op for others. */
  remove(waiter: RoomWaiter): void {
    const bytes = this.#waiters.get(waiter);
    if (bytes === undefined) return;
    this.#waiters.delete(waiter);
    this.#bytes -= bytes;
  }

  /** Calls those that have waited longest, as many as `room` bytes are enough for. */
  serve(room: number): void {
    for (const [waiter, bytes] of this.#waiters) {
      room -= bytes * BLOCK_SHARE;
      if (room < 0) return;
      this.remove(waiter);
      waiter.onRoom();
    }
  }
}

/** A block is less than twice as long as what is in it. */
const BLOCK_SHARE = 2;
