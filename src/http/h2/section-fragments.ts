// The fragments of a header section that comes in several frames (RFC 9113, section 6.10), until it is complete.

import { type Memory, NO_BLOCK } from '../../io/memory.js';

/** Added to twice the limit of a decoded header section, for peers that encode it inefficiently. */
const SPARE_BYTES = 16 * 1024;
/** Number of CONTINUATION frames of a section that may be small. With more of them, MIN_CONTINUATION_BYTES is their minimum average size. */
const FREE_CONTINUATIONS = 16;
const MIN_CONTINUATION_BYTES = 256;

export class SectionFragments {
  readonly #memory: Memory;
  readonly #maxBytes: number;
  #block = NO_BLOCK;
  #bytes = 0;
  /** CONTINUATION frames. */
  #frames = 0;

  /** @param maxHeadBytes decoded bytes of a section */
  constructor(memory: Memory, maxHeadBytes: number) {
    this.#memory = memory;
    this.#maxBytes = 2 * maxHeadBytes + SPARE_BYTES;
  }

  /** Bytes of all fragments. */
  get bytes(): number {
    return this.#bytes;
  }

  /** The offset of the fragments, in memory. */
  get start(): number {
    return this.#block;
  }

  /** Bytes of the arena. */
  get retainedBytes(): number {
    return this.#block === NO_BLOCK ? 0 : this.#memory.blockSize(this.#block);
  }

  /** Begins a section with its first fragment, memory[at, end). Returns what is wrong, or ''. */
  begin(at: number, end: number): string {
    this.#bytes = this.#frames = 0;
    return this.#keep(at, end);
  }

  /** Counts a CONTINUATION frame of `length` bytes. Returns whether the frames of the section are too small on average. */
  isFloodAfter(length: number): boolean {
    const frames = ++this.#frames;
    return frames > FREE_CONTINUATIONS && this.#bytes + length < frames * MIN_CONTINUATION_BYTES;
  }

  /** Adds memory[at, end) of a CONTINUATION frame. Returns what is wrong, or ''. */
  add(at: number, end: number): string {
    return this.#keep(at, end);
  }

  /** Forgets the section. Its bytes stay until the turn ends. */
  release(): void {
    if (this.#block !== NO_BLOCK) this.#memory.release(this.#block);
    this.#block = NO_BLOCK;
    this.#bytes = 0;
  }

  #keep(at: number, end: number): string {
    const bytes = this.#bytes + end - at;
    if (bytes > this.#maxBytes) return 'header section too large';
    const room = this.retainedBytes;
    if (bytes > room && !this.#grow(Math.max(bytes, 2 * room), bytes)) return 'memory is short';
    this.#memory.copy(this.#block + this.#bytes, at, end);
    this.#bytes = bytes;
    return '';
  }

  /** @param least the size without which the fragment has no room */
  #grow(wanted: number, least: number): boolean {
    const larger = this.#memory.retain(least, wanted);
    if (larger === NO_BLOCK) return false;
    if (this.#block !== NO_BLOCK) {
      this.#memory.copy(larger, this.#block, this.#block + this.#bytes);
      this.#memory.release(this.#block);
    }
    this.#block = larger;
    return true;
  }
}
