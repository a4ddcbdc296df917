// Bytes of a long answer, gathered into pieces of a bounded size that each are handed on once.

const PIECE_BYTES = 64 * 1024;

export class Pieces {
  #piece = Buffer.allocUnsafe(PIECE_BYTES);
  #length = 0;

  /** Whether a piece should be taken before more is put. */
  get isFull(): boolean {
    return this.#length >= PIECE_BYTES / 2;
  }

  /** What was put since the last piece; the caller may transfer it. */
  take(): Uint8Array {
    const piece = this.#piece.subarray(0, this.#length);
    if (piece.length === 0) return piece;
    this.#piece = Buffer.allocUnsafe(PIECE_BYTES);
    this.#length = 0;
    return piece;
  }

  put(bytes: Uint8Array): void {
    this.#ensure(bytes.length);
    const piece = this.#piece;
    let at = this.#length;
    // Names are short: a loop beats a call to set().
    for (let i = 0; i < bytes.length; i++) piece[at++] = bytes[i]!;
    this.#length = at;
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
