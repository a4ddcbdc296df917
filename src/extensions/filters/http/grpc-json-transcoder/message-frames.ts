// Splits the body of a gRPC response into its messages, as it arrives.

const FRAME_HEADER_BYTES = 5;

export class MessageFrames {
  #parts: Buffer[] = [];
  #bytes = 0;
  /** Bytes that the next step needs. */
  #needed = FRAME_HEADER_BYTES;
  /** The text of an error. */
  error: string | undefined;

  /** Bytes of messages that are not complete. */
  get heldBytes(): number {
    return this.#bytes;
  }

  /** Appends a copy of the next bytes. */
  push(bytes: Uint8Array): void {
    if (bytes.length === 0) return;
    this.#parts.push(Buffer.from(bytes));
    this.#bytes += bytes.length;
  }

  /** Returns the next complete message; undefined if there is none, and after an error. */
  next(): Buffer | undefined {
    if (this.error !== undefined || this.#bytes < this.#needed) return undefined;
    const all = this.#joined();
    const flags = all[0]!;
    if (flags !== 0) {
      this.error = `Unsupported gRPC frame flag: ${flags}`;
      return undefined;
    }
    const end = FRAME_HEADER_BYTES + all.readUInt32BE(1);
    if (all.length < end) {
      // Nothing is joined again before the message is complete.
      this.#needed = end;
      return undefined;
    }
    this.#needed = FRAME_HEADER_BYTES;
    this.#bytes = all.length - end;
    this.#parts = this.#bytes === 0 ? [] : [all.subarray(end)];
    return all.subarray(FRAME_HEADER_BYTES, end);
  }

  /** Called at the end of the body: what is left is an error. */
  end(): void {
    if (this.#bytes === 0 || this.error !== undefined) return;
    if (this.#bytes < FRAME_HEADER_BYTES) this.error = 'Incomplete gRPC frame header received';
    else {
      const expected = this.#joined().readUInt32BE(1);
      const actual = this.#bytes - FRAME_HEADER_BYTES;
      this.error = `Incomplete gRPC frame expected size: ${expected} actual size: ${actual}`;
    }
  }

  #joined(): Buffer {
    if (this.#parts.length > 1) this.#parts = [Buffer.concat(this.#parts)];
    return this.#parts[0]!;
  }
}
