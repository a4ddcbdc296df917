// Bytes of a long answer, gathered into pieces of a bounded size that each are handed on once.

const PIECE_BYTES = 64 * 1024;

export class Pieces {
  #piece = Buffer.allocUnsafe(PIECE_BYTES);
  #length = 0;

  /** Whether a piece should be taken before more is put. */
  get isFull(): boolean {
    return this.#length >= PIECE_BYTES / 2;
  }

  /** Bytes that were put since the last piece. */
  get length(): number {
    return this.#length;
  }

  /** Forgets what was put since the last piece. */
  clear(): void {
    this.#length = 0;
  }

  /** What was put since the last piece; the caller may transfer it. */
  take(): Uint8Array {
    const piece = this.#piece.subarray(0, this.#length);
    if (piece.length === 0) return piece;
    this.#piece = Buffer.allocUnsafe(PIECE_BYTES);
    this.#length = 0;
    return piece;
  }

  /** Bytes, or those of them from `from` to `to`. */
  put(bytes: Uint8Array, from = 0, to = bytes.length): void {
    this.#ensure(to - from);
    const piece = this.#piece;
    let at = this.#length;
    if (to - from < 200) {
      // Names are short: a loop beats a call to set().
      for (let i = from; i < to; i++) piece[at++] = bytes[i]!;
      this.#length = at;
    } else {
      piece.set(bytes.subarray(from, to), at);
      this.#length = at + to - from;
    }
  }

  /** What was put into others since their last piece, from one byte to another. */
  putFrom(other: Pieces, from: number, to: number): void {
    this.put(other.#piece, from, to);
  }

  putText(text: string): void {
    this.#ensure(text.length * 3);
    this.#length += this.#piece.write(text, this.#length, 'utf8');
  }

  putByte(byte: number): void {
    this.#ensure(1);
    this.#piece[this.#length++] = byte;
  }

  /** A count in decimal. */
  putCount(count: number): void {
    if (count >= 0 && count < 10) this.putByte(48 + Math.floor(count));
    else this.putText(String(Math.round(count)));
  }

  #ensure(bytes: number): void {
    if (this.#length + bytes <= this.#piece.length) return;
    const larger = Buffer.allocUnsafe(Math.max(this.#piece.length * 2, this.#length + bytes));
    larger.set(this.#piece.subarray(0, this.#length));
    this.#piece = larger;
  }
}
