// Pieces of a body in the order of their arrival, with flow control.

export interface Piece {
  readonly bytes: Uint8Array;
  /** The message ends with it. */
  readonly isLast: boolean;
}

export class PieceQueue {
  readonly #maxBytes: number;
  readonly #pieces: Piece[] = [];
  #bytes = 0;
  #isFull = false;

  /** Above `maxBytes` the queue is full, until half of it is taken. */
  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  get isEmpty(): boolean {
    return this.#pieces.length === 0;
  }

  get isFull(): boolean {
    return this.#isFull;
  }

  /** The queue must not be empty. */
  get first(): Piece {
    return this.#pieces[0]!;
  }

  add(piece: Piece): void {
    this.#pieces.push(piece);
    this.#bytes += piece.bytes.length;
    if (this.#bytes > this.#maxBytes) this.#isFull = true;
  }

  /** Removes the first piece. The queue must not be empty. */
  take(): Piece {
    const piece = this.#pieces.shift()!;
    this.#bytes -= piece.bytes.length;
    if (this.#bytes <= this.#maxBytes / 2) this.#isFull = false;
    return piece;
  }

  clear(): void {
    this.#pieces.length = this.#bytes = 0;
    this.#isFull = false;
  }

  /** Makes one piece of all. */
  join(): void {
    if (this.#pieces.length < 2) return;
    const bytes = Buffer.concat(this.#pieces.map((piece) => piece.bytes));
    const { isLast } = this.#pieces.at(-1)!;
    this.#pieces.length = 0;
    this.#pieces.push({ bytes, isLast });
  }
}
