// A FIFO queue of connections that wait for room in an arena. They hold the bytes received so far outside of it.

export interface RoomWaiter {
  /** Called when there is room again, after the waiter was removed from the queue. */
  onRoom(): void;
}

export class RoomQueue {
  /** Maximum bytes of all waiters together. */
  readonly #maxBytes: number;
  readonly #waiters = new Map<RoomWaiter, number>();
  #bytes = 0;
  #total = 0;

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  get isEmpty(): boolean {
    return this.#waiters.size === 0;
  }

  /** How many waiters were ever added. */
  get total(): number {
    return this.#total;
  }

  /** Appends a waiter that holds `bytes`. Returns false if the queue is full. */
  add(waiter: RoomWaiter, bytes: number): boolean {
    if (this.#bytes + bytes > this.#maxBytes) return false;
    this.#waiters.set(waiter, bytes);
    this.#bytes += bytes;
    this.#total++;
    return true;
  }

  /** Removes a waiter. A no-op if it is not in the queue. */
  remove(waiter: RoomWaiter): void {
    const bytes = this.#waiters.get(waiter);
    if (bytes === undefined) return;
    this.#waiters.delete(waiter);
    this.#bytes -= bytes;
  }

  /** Removes and calls the longest-waiting waiters for which `room` bytes suffice. */
  serve(room: number): void {
    for (const [waiter, bytes] of this.#waiters) {
      room -= bytes * BLOCK_SHARE;
      if (room < 0) return;
      this.remove(waiter);
      waiter.onRoom();
    }
  }
}

/** A block is less than twice as long as its contents. */
const BLOCK_SHARE = 2;
