// Bytes of a value that has not arrived as a whole. Large ones are reserved, so that peers cannot make them grow without limit.

/** The memory outside of the arena, as its users reserve it. */
export interface Reservations {
  reserve(bytes: number): boolean;
  release(bytes: number): void;
}

/** Thrown if there is no room for bytes that must be kept. */
export class HeldBytesError extends Error {}

const INITIAL_BYTES = 4096;
/** Smaller buffers are not worth a reservation: each connection may have one. */
const FREE_BYTES = 64 * 1024;

export class HeldBytes {
  bytes: Uint8Array = EMPTY;
  start = 0;
  end = 0;
  readonly #reservations: Reservations;
  #reserved = 0;
  #buffer: Uint8Array = EMPTY;

  constructor(reservations: Reservations) {
    this.#reservations = reservations;
  }

  /** Makes bytes[offset, offset + length) follow those that are held. They may be used in place until keep() is called. */
  add(bytes: Uint8Array, offset: number, length: number): void {
    if (this.start === this.end) {
      this.bytes = bytes;
      this.start = offset;
      this.end = offset + length;
      return;
    }
    this.#makeRoom(length);
    this.#buffer.set(bytes.subarray(offset, offset + length), this.end);
    this.end += length;
  }

  /** Copies bytes that are not consumed: those that were added are about to become invalid. */
  keep(): void {
    const length = this.end - this.start;
    if (length === 0) return this.clear();
    if (this.bytes === this.#buffer) return;
    const { bytes, start } = this;
    this.#resize(length);
    this.#buffer.set(bytes.subarray(start, start + length));
    this.bytes = this.#buffer;
    this.start = 0;
    this.end = length;
  }

  clear(): void {
    this.bytes = this.#buffer = EMPTY;
    this.start = this.end = 0;
    this.#reservations.release(this.#reserved);
    this.#reserved = 0;
  }

  /** Makes room for `more` bytes after the held ones, which are in the buffer. */
  #makeRoom(more: number): void {
    if (this.end + more <= this.#buffer.length) return;
    const { end, start } = this;
    const old = this.#buffer;
    this.#resize(Math.max(end - start + more, (end - start) * 2));
    this.#buffer.set(old.subarray(start, end));
    this.bytes = this.#buffer;
    this.start = 0;
    this.end = end - start;
  }

  #resize(length: number): void {
    const size = Math.max(length, INITIAL_BYTES);
    const reserved = size > FREE_BYTES ? size : 0;
    if (reserved > this.#reserved && !this.#reservations.reserve(reserved - this.#reserved)) {
      throw new HeldBytesError(`no room for ${length} bytes`);
    }
    if (reserved < this.#reserved) this.#reservations.release(this.#reserved - reserved);
    this.#reserved = reserved;
    this.#buffer = new Uint8Array(size);
  }
}

const EMPTY = new Uint8Array(0);
