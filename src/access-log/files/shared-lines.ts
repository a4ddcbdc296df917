// The lines of a thread's buffer in shared memory. If the thread is terminated, another one writes them.

/** [bytes of whole lines, lines], each 4 bytes. */
const HEAD_BYTES = 8;

export class SharedLines {
  readonly memory: SharedArrayBuffer;
  /** For lines. */
  readonly bytes: Uint8Array;
  readonly #head: Int32Array;

  /** @param memory that of another thread; or the size of new memory */
  constructor(memory: SharedArrayBuffer | number) {
    this.memory = typeof memory === 'number' ? new SharedArrayBuffer(HEAD_BYTES + memory) : memory;
    this.bytes = new Uint8Array(this.memory, HEAD_BYTES);
    this.#head = new Int32Array(this.memory, 0, 2);
  }

  /** Called when the first `length` bytes are `lines` whole lines that nobody has begun to write. */
  set(length: number, lines: number): void {
    this.#head[0] = length;
    this.#head[1] = lines;
  }

  /** Returns copies of the lines that are not written, and their number. Called when the other thread has ended. */
  left(): { readonly bytes: Uint8Array; readonly lines: number } {
    const [length, lines] = this.#head as unknown as [number, number];
    return { bytes: this.bytes.slice(0, length), lines };
  }
}

/** Takes the shared lines of a thread's files, by a number for each open file. */
export interface SharedLinesReceiver {
  opened(file: number, path: string, memory: SharedArrayBuffer): void;
  closed(file: number): void;
}
