// A decoder and an encoder as a test uses them: hexadecimal blocks and lists of fields.

import { headerIdOf } from '../../../../src/common/text/header-names.js';
import { HpackDecoder } from '../../../../src/http/h2/hpack/decoder.js';
import { BLOCK_OVERHEAD, FIELD_OVERHEAD, HpackEncoder } from '../../../../src/http/h2/hpack/encoder.js';
import { FieldKind } from '../../../../src/http/h2/hpack/static-table.js';
import { Memory } from '../../../../src/io/memory.js';

export const memory = new Memory({
  receiveBytes: 256 * 1024,
  scratchBytes: 512 * 1024,
  arenaBytes: 4 * 1024 * 1024,
});

/** `name: value`, with a mark for what is invalid. */
export type FieldText = string;

export class DecoderBench {
  readonly decoder: HpackDecoder;
  /** Whether fields are only decoded for the sake of the dynamic table. */
  isFull = false;

  constructor(limit = 4096) {
    this.decoder = new HpackDecoder(memory, limit);
  }

  /** Returns the fields of a block, or undefined if it is invalid. */
  decode(block: string | Uint8Array): FieldText[] | undefined {
    const input = typeof block === 'string' ? Buffer.from(block.replaceAll(' ', ''), 'hex') : block;
    memory.bytes.set(input, 100);
    const fields: FieldText[] = [];
    const isValid = this.decoder.decode(100, 100 + input.length, {
      isFull: this.isFull,
      field: (kind, nameStart, nameEnd, valueStart, valueEnd) => {
        const name = (kind & FieldKind.Mask) === FieldKind.Authority ? ':authority' : memory.text(nameStart, nameEnd);
        const marks = `${kind & FieldKind.InvalidName ? ' !name' : ''}${kind & FieldKind.InvalidValue ? ' !value' : ''}`;
        fields.push(`${name}: ${memory.text(valueStart, valueEnd)}${marks}`);
        if (!this.isFull && memory.text(valueEnd, valueEnd + 2) !== '\r\n') throw new Error('no CRLF after the value');
      },
    });
    memory.endTurn();
    return isValid ? fields : undefined;
  }
}

export class EncoderBench {
  readonly encoder: HpackEncoder;

  constructor(usesHuffman = true) {
    this.encoder = new HpackEncoder(memory, usesHuffman);
  }

  encode(fields: readonly (readonly [name: string, value: string])[]): Uint8Array {
    const ranges = fields.map(([name, value]) => {
      const start = memory.scratch(name.length + value.length);
      memory.write(start, name + value);
      return { name, value, start };
    });
    const bound = ranges.reduce(
      (sum, { name, value }) => sum + name.length + value.length + FIELD_OVERHEAD,
      BLOCK_OVERHEAD,
    );
    const block = memory.scratch(bound);
    let to = this.encoder.begin(block);
    for (const { name, value, start } of ranges) {
      const nameEnd = start + name.length;
      const valueEnd = nameEnd + value.length;
      if (name === ':status') to = this.encoder.status(to, Number(value));
      else if (name === ':authority') to = this.encoder.authority(to, nameEnd, valueEnd);
      else {
        const id = headerIdOf(memory.bytes, memory.view, start, nameEnd);
        to = this.encoder.field(to, id, start, nameEnd, nameEnd, valueEnd);
      }
    }
    if (to > block + bound) throw new Error(`a block of ${to - block} bytes exceeds its bound of ${bound}`);
    const encoded = memory.bytes.slice(block, to);
    memory.endTurn();
    return encoded;
  }
}
