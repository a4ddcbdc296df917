// Gathers the bytes of a long answer into pieces of bounded size.

const PIECE_BYTES = 64 * 1024;

export class Pieces {
  #piece = Buffer.allocUnsafe(PIECE_BYTES);
  #length = 0;

  /** Whether a piece should be taken before more is put. */
  get isFull(): boolean {
    return this.#length >= PIECE_BYTES / 2;
  }

  /** Bytes put since the last piece. */
  get length(): number {
    return this.#length;
  }

  /** Drops the bytes put since the last piece. */
  clear(): void {
    this.#length = 0;
  }

  /** Returns the bytes put since the last piece. The caller may transfer them. */
  take(): Uint8Array {
    const piece = this.#piece.subarray(0, this.#length);
    if (piece.length === 0) return piece;
    this.#piece = Buffer.allocUnsafe(PIECE_BYTES);
    this.#length = 0;
    return piece;
  }

  /** Appends bytes[from, to). */
  put(bytes: Uint8Array, from = 0, to = bytes.length): void {
    this.#ensure(to - from);
    const piece = this.#piece;
    let at = this.#length;
    if (to - from < 200) {
      // Names are short: a loop is faster than set().
      for (let i = from; i < to; i++) piece[at++] = bytes[i]!;
      this.#length = at;
    } else {
      piece.set(bytes.subarray(from, to), at);
      this.#length = at + to - from;
    }
  }

  /** Appends the bytes [from, to) of another piece in progress. */
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

  /** Appends a count in decimal. */
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
