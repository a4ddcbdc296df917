// Plain messages of tests, and the header blocks that filters see.

import type { ReceivedMessage, TestMessage } from '../api/testing.js';
import { byteText } from '../common/text/byte-text.js';
import { headerKey } from '../extensions/header-key.js';
import { type HeaderBlock, headerBlocks } from '../http/headers/header-block.js';
import type { Memory } from '../io/memory.js';

type Fields = Readonly<Record<string, string | readonly string[]>>;

/** Returns a block with the fields of a message. content-length is that of a body in one piece. */
export function headOf({ body, headers = {} }: TestMessage, memory: Memory): HeaderBlock {
  const block = fieldsOf(headers, memory);
  if (body === undefined || Array.isArray(body) || block.find(CONTENT_LENGTH) >= 0) return block;
  block.add(CONTENT_LENGTH, String(bytesOfPiece(body as string).length));
  return block;
}

export function fieldsOf(fields: Fields, memory: Memory): HeaderBlock {
  const block = headerBlocks(memory).take();
  for (const [name, values] of Object.entries(fields)) {
    for (const value of typeof values === 'string' ? [values] : values)
      block.add(headerKey(name.toLowerCase()), byteText(value));
  }
  return block;
}

export function piecesOf({ body }: TestMessage): Uint8Array[] {
  if (body === undefined) return [];
  const pieces = typeof body === 'string' || body instanceof Uint8Array ? [body] : body;
  return pieces.map(bytesOfPiece);
}

export function bytesOfPiece(piece: string | Uint8Array): Uint8Array {
  return typeof piece === 'string' ? Buffer.from(piece) : piece;
}

/** Collects a message that a filter has passed on. */
export class Received {
  #fields: readonly (readonly [string, string])[] = [];
  #trailers: readonly (readonly [string, string])[] = [];
  readonly #pieces: Buffer[] = [];

  head(block: HeaderBlock): void {
    this.#fields = pairsOf(block);
  }

  data(bytes: Uint8Array): void {
    if (bytes.length > 0) this.#pieces.push(Buffer.from(bytes));
  }

  trailers(block: HeaderBlock): void {
    this.#trailers = pairsOf(block);
  }

  get bytes(): number {
    return this.#pieces.reduce((sum, { length }) => sum + length, 0);
  }

  get message(): ReceivedMessage {
    const body = Buffer.concat(this.#pieces);
    const text = body.toString();
    return {
      headers: recordOf(this.#fields),
      fields: this.#fields,
      body: new Uint8Array(body),
      pieces: this.#pieces.map(String),
      text,
      trailers: recordOf(this.#trailers),
      json: () => JSON.parse(text),
    };
  }
}

function pairsOf(block: HeaderBlock): [string, string][] {
  const pairs: [string, string][] = [];
  for (let index = 0; index < block.size; index++) {
    if (!block.isRemoved(index))
      pairs.push([block.name(index).toLowerCase(), Buffer.from(block.value(index), 'latin1').toString()]);
  }
  return pairs;
}

function recordOf(pairs: readonly (readonly [string, string])[]): Record<string, string> {
  const record: Record<string, string> = {};
  for (const [name, value] of pairs) record[name] = Object.hasOwn(record, name) ? `${record[name]}, ${value}` : value;
  return record;
}

const CONTENT_LENGTH = headerKey('content-length');
