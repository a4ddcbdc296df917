// Constant HTTP/1 lines, written once into a thread's memory and sent as ranges.

import type { Memory } from '../../io/memory.js';
import { reasonPhrase } from '../headers/reason-phrase.js';

/** Lines that sendRequestHead() and sendResponseHead() append to the fields. A bit set. */
export const enum Tail {
  None = 0,
  Close = 1,
  KeepAlive = 2,
  Upgrade = 4,
  Chunked = 8,
  NoContent = 16,
}
const TAILS = 32;

/** A range of the thread's memory. */
export interface Line {
  readonly start: number;
  readonly length: number;
}

export class Lines {
  /** Indexed by Tail bits; each includes the empty line that ends the head. */
  readonly tails: readonly Line[];
  /** The same with names in proper case. */
  readonly properTails: readonly Line[];
  readonly crlf: Line;
  /** Follows the data of the last chunk: its CRLF, the chunk of size 0, no trailers. */
  readonly lastChunkAfterData: Line;
  readonly lastChunk: Line;
  /** The chunk of size 0 when trailers follow. */
  readonly zeroChunk: Line;
  readonly continue: Line;

  readonly #memory: Memory;
  readonly #statusLines: (Line | undefined)[] = [];

  constructor(memory: Memory) {
    this.#memory = memory;
    this.tails = Array.from({ length: TAILS }, (_, bits) => this.#write(`${tailText(bits)}\r\n`));
    this.properTails = this.tails.map((_, bits) => this.#write(`${tailText(bits).replace(WORD, capitalized)}\r\n`));
    this.crlf = this.#write('\r\n');
    this.lastChunkAfterData = this.#write('\r\n0\r\n\r\n');
    this.lastChunk = this.#write('0\r\n\r\n');
    this.zeroChunk = this.#write('0\r\n');
    this.continue = this.#write('HTTP/1.1 100 Continue\r\n\r\n');
  }

  /** Returns "HTTP/1.1 200 OK" with CRLF, in the client's version. Each line is written when it is first needed. */
  statusLine(status: number, minorVersion: number): Line {
    const index = status * 2 + minorVersion;
    const line = this.#statusLines[index];
    if (line !== undefined) return line;
    const text = `HTTP/1.${minorVersion} ${status} ${reasonPhrase(status)}\r\n`;
    return (this.#statusLines[index] = this.#write(text));
  }

  #write(text: string): Line {
    const start = this.#memory.permanent(text.length);
    for (let i = 0; i < text.length; i++) this.#memory.bytes[start + i] = text.charCodeAt(i);
    return { start, length: text.length };
  }
}

function tailText(bits: number): string {
  let text = '';
  if ((bits & Tail.Close) !== 0) text += 'connection: close\r\n';
  if ((bits & Tail.KeepAlive) !== 0) text += 'connection: keep-alive\r\n';
  if ((bits & Tail.Upgrade) !== 0) text += 'connection: upgrade\r\n';
  if ((bits & Tail.Chunked) !== 0) text += 'transfer-encoding: chunked\r\n';
  if ((bits & Tail.NoContent) !== 0) text += 'content-length: 0\r\n';
  return text;
}

/** The first letter of each word in the names of lines. */
const WORD = /^[a-z]|(?<=^[a-z]+-)[a-z]/gm;

function capitalized(letter: string): string {
  return letter.toUpperCase();
}
