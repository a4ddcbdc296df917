// Reads the sections of a WebAssembly module in binary form. Every length is checked against the bytes that are there.

/** The module is not well-formed, or has what Baton does not load. */
export class ModuleError extends Error {}

export const CORRUPTED = 'Failed to parse corrupted Wasm module';

export const enum SectionId {
  Custom = 0,
  Type = 1,
  Import = 2,
  Function = 3,
  Table = 4,
  Memory = 5,
  Export = 7,
}

export interface Section {
  readonly id: number;
  /** Offsets in the module: of the id, of the content, and after the content. */
  readonly start: number;
  readonly content: number;
  readonly end: number;
}

const MAGIC = Buffer.from([0, 0x61, 0x73, 0x6d, 1, 0, 0, 0]);

/** Returns the sections in order. Throws a ModuleError for bytes that are no module. */
export function sectionsOf(bytes: Buffer): Section[] {
  if (!bytes.subarray(0, 8).equals(MAGIC)) throw new ModuleError(CORRUPTED);
  const reader = new ByteReader(bytes, 8, bytes.length);
  const sections: Section[] = [];
  while (!reader.isAtEnd) {
    const start = reader.at;
    const id = reader.byte();
    const length = reader.u32();
    const content = reader.at;
    reader.skip(length);
    sections.push({ id, start, content, end: reader.at });
  }
  return sections;
}

/** Reads bytes in a range; throws a ModuleError at its end. */
export class ByteReader {
  readonly #bytes: Buffer;
  readonly #end: number;
  at: number;

  constructor(bytes: Buffer, start: number, end: number) {
    this.#bytes = bytes;
    this.at = start;
    this.#end = end;
  }

  get isAtEnd(): boolean {
    return this.at >= this.#end;
  }

  byte(): number {
    if (this.at >= this.#end) throw new ModuleError(CORRUPTED);
    return this.#bytes[this.at++]!;
  }

  /** An unsigned LEB128 number of 32 bits. */
  u32(): number {
    let value = 0;
    for (let shift = 0; shift < 35; shift += 7) {
      const byte = this.byte();
      value += (byte & 0x7f) * 2 ** shift;
      if (byte < 0x80) {
        if (value > 0xffffffff) break;
        return value;
      }
    }
    throw new ModuleError(CORRUPTED);
  }

  skip(length: number): void {
    if (length > this.#end - this.at) throw new ModuleError(CORRUPTED);
    this.at += length;
  }

  name(): string {
    const length = this.u32();
    const start = this.at;
    this.skip(length);
    return this.#bytes.toString('utf8', start, this.at);
  }

  /** Minimum and maximum of a memory or table; undefined: there is no maximum. */
  limits(): { readonly min: number; readonly max: number | undefined } {
    const flags = this.byte();
    if (flags > 1) throw new ModuleError('shared and 64-bit memories and tables are not supported');
    const min = this.u32();
    return { min, max: flags === 1 ? this.u32() : undefined };
  }
}

/** Returns a number as unsigned LEB128. */
export function leb128(value: number): number[] {
  const bytes: number[] = [];
  do {
    const low = value % 128;
    value = Math.floor(value / 128);
    bytes.push(value > 0 ? low + 128 : low);
  } while (value > 0);
  return bytes;
}
