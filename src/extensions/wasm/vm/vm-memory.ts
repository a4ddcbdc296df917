// A module's memory as the host uses it. Every pointer and length comes from the module and is checked.

import type { WasmMemory } from './web-assembly.js';

export class VmMemory {
  /** None until the module is instantiated. */
  source: WasmMemory = { buffer: new ArrayBuffer(0) };
  /** Allocates bytes in the module; undefined: it failed. */
  readonly #allocate: (length: number) => number | undefined;
  /** All bytes. A memory that has grown has another buffer. */
  #view: Buffer = Buffer.alloc(0);

  constructor(allocate: (length: number) => number | undefined) {
    this.#allocate = allocate;
  }

  get #bytes(): Buffer {
    const { buffer } = this.source;
    if (this.#view.buffer !== buffer) this.#view = Buffer.from(buffer);
    return this.#view;
  }

  /** Returns the bytes in place, valid until the module runs; undefined: they are outside the memory. */
  bytes(pointer: number, length: number): Buffer | undefined {
    const start = pointer >>> 0;
    const end = start + (length >>> 0);
    const bytes = this.#bytes;
    return end > bytes.length ? undefined : bytes.subarray(start, end);
  }

  /** Returns bytes as text with one character a byte; undefined: they are outside the memory. */
  text(pointer: number, length: number): string | undefined {
    const start = pointer >>> 0;
    const end = start + (length >>> 0);
    const bytes = this.#bytes;
    return end > bytes.length ? undefined : bytes.toString('latin1', start, end);
  }

  /** Writes a 32-bit number. Returns false if the place is outside the memory. */
  setU32(pointer: number, value: number): boolean {
    const at = pointer >>> 0;
    const bytes = this.#bytes;
    if (at + 4 > bytes.length) return false;
    bytes.writeUInt32LE(value >>> 0, at);
    return true;
  }

  setU64(pointer: number, value: bigint): boolean {
    const at = pointer >>> 0;
    const bytes = this.#bytes;
    if (at + 8 > bytes.length) return false;
    bytes.writeBigUInt64LE(BigInt.asUintN(64, value), at);
    return true;
  }

  set(pointer: number, data: Uint8Array): boolean {
    const at = pointer >>> 0;
    const bytes = this.#bytes;
    if (at + data.length > bytes.length) return false;
    bytes.set(data, at);
    return true;
  }

  /** Copies data to memory that the module allocates, and writes its place and length. Returns false for a bad pointer. */
  give(data: Uint8Array, pointerAt: number, lengthAt: number): boolean {
    let pointer = 0;
    if (data.length > 0) {
      const allocated = this.#allocate(data.length);
      if (allocated === undefined || !this.set(allocated, data)) return false;
      pointer = allocated;
    }
    return this.setU32(pointerAt, pointer) && this.setU32(lengthAt, data.length);
  }

  /** give() for text with one character a byte. */
  giveText(text: string, pointerAt: number, lengthAt: number): boolean {
    return this.give(Buffer.from(text, 'latin1'), pointerAt, lengthAt);
  }
}
