// Parses the simple YAML that generators write, several times as fast as the YAML library and with a fifth of its memory: block
// maps and lists, single-line scalars and flow collections, comments.
//
// All other texts (anchors, tags, multi-line strings, rare escapes, mistakes) are left to the library. Whatever is parsed here
// has the same meaning there. Loading the library would otherwise take a tenth of the start-up time, and most of it for large
// files.

import { MAX_DEPTH } from '../source.js';
import type { ValueEvents } from '../value-events.js';
import { isBooleanWord, noteScalar } from './yaml-number.js';

/** The value of a text, and the number of values in it. */
export interface PlainYaml {
  readonly value: unknown;
  readonly size: number;
  /** Offset of a value that is nested too deeply, at which parsing stopped. */
  readonly tooDeepAt?: number;
}

/**
 * Parses a text, or returns undefined at the first construct that needs the library.
 * @param events receives the values up to there
 */
export function readPlainYaml(text: string, events?: ValueEvents): PlainYaml | undefined {
  const reader = new PlainYamlReader(text, events);
  try {
    const value = reader.read();
    return { value, size: reader.size };
  } catch (error) {
    // A text of megabytes exhausts the stack of an expression with alternatives. The library reads it piece by piece.
    if (error === NOT_PLAIN || error instanceof RangeError) return undefined;
    if (error === TOO_DEEP) return { value: undefined, size: reader.size, tooDeepAt: reader.at };
    throw error;
  }
}

/** Thrown internally and caught in readPlainYaml(). */
const NOT_PLAIN = new Error('not plain');
const TOO_DEEP = new Error('nested too deeply');

/** Matches a line, or the rest of one, without content. */
const EMPTY = / *(?:\n|#[\x20-\x7e]*(?:\n|$))/y;
const DASH = /-(?: +|(?=\n|$))/y;
const KEY = /(?:([A-Za-z_][\w.\-/]*)|"([\x20\x21\x23-\x5b\x5d-\x7e]*)"|'([\x20-\x26\x28-\x7e]*)'):(?: +|(?=\n|$))/y;
/** A plain scalar: colons in it are followed by more text. What ends it must be checked. */
const PLAIN_BLOCK = /[A-Za-z0-9_/.+-](?:[^\x00-\x1f:#\x7f-\uffff]|:(?=[^\x00-\x20\x7f-\uffff]))*/y;
const PLAIN_FLOW = /[A-Za-z0-9_/.+-](?:[^\x00-\x1f:#,[\]{}\x7f-\uffff]|:(?=[^\x00-\x20,[\]{}\x7f-\uffff]))*/y;
const QUOTED = /"((?:[\x20\x21\x23-\x5b\x5d-\x7e]|\\["\\/bfnrt])*)"|'([\x20-\x26\x28-\x7e]*)'/y;
const SPACES = / */y;
/** What may follow a value on its line. */
const REST = / *(?: #[\x20-\x7e]*)?(?=\n|$)/y;

/** YAML limits the length of keys. The library enforces the exact limit. */
const MAX_KEY = 1000;

/** Words and numbers that the core schema does not read as strings. */
const WORD = /^(?:null|true|false|~)$/i;
const NUMBER = /^[-+]?(?:(?:\.\d+|\d+(?:\.\d*)?)(?:e[-+]?\d+)?|0[xo][0-9a-f]+|\.(?:inf|nan))$/i;
const INTEGER = /^(?:0|-?[1-9]\d{0,14})$/;
/** Octal, such as file modes. */
const OCTAL = /^0[0-7]{1,14}$/;
const DECIMAL = /^-?\d+\.\d+$/;

class PlainYamlReader {
  /** Number of values, counted like the library's nodes: each value once. */
  size = 0;
  readonly #text: string;
  readonly #events: ValueEvents | undefined;
  #at = 0;
  /** Column of the line's first character, or of the value after dashes. */
  #column = 0;
  #depth = 0;
  /** Offset after the colon of the last key. */
  #keyEnd = 0;
  /** The last scalar, if it is a number or boolean word that has not been recorded yet. */
  #noted: string | undefined;

  constructor(text: string, events: ValueEvents | undefined) {
    this.#text = text;
    this.#events = events;
  }

  get at(): number {
    return this.#at;
  }

  read(): unknown {
    this.#nextLine();
    if (this.#isAtEnd) throw NOT_PLAIN;
    const value = this.#block(0);
    if (!this.#isAtEnd) throw NOT_PLAIN;
    return value;
  }

  get #isAtEnd(): boolean {
    return this.#at >= this.#text.length;
  }

  /** Reads the map or list that begins here, at column `least` or later. */
  #block(least: number): unknown {
    const isList = this.#isDash;
    this.#enter(isList ? 'list' : 'map');
    const column = this.#column;
    if (column < least) throw NOT_PLAIN;
    const value = isList ? this.#list(column) : this.#map(column);
    this.#leave();
    return value;
  }

  get #isDash(): boolean {
    if (this.#text.charCodeAt(this.#at) !== 0x2d) return false;
    const next = this.#text.charCodeAt(this.#at + 1);
    return next === 0x20 || next === 0x0a || Number.isNaN(next);
  }

  #list(column: number): unknown[] {
    const list: unknown[] = [];
    while (!this.#isAtEnd && this.#column === column && this.#isDash) {
      const dash = this.#match(DASH) as RegExpExecArray;
      if (this.#isLineEnd) {
        this.#nextLine();
        const isEmpty = this.#isAtEnd || this.#column <= column;
        list.push(isEmpty ? this.#nothing(dash.index + 1) : this.#block(column + 1));
      } else if (this.#isDash || this.#isKey()) {
        this.#column = column + dash[0].length;
        list.push(this.#block(column + 1));
      } else this.#note(list, list.push(this.#lineValue()) - 1);
    }
    if (!this.#isAtEnd && this.#column > column) throw NOT_PLAIN;
    return list;
  }

  #map(column: number): Record<string, unknown> {
    const map: Record<string, unknown> = Object.create(null);
    while (!this.#isAtEnd && this.#column === column && !this.#isDash) {
      const key = this.#key(map);
      if (!this.#isLineEnd) {
        map[key] = this.#lineValue();
        this.#note(map, key);
        continue;
      }
      const end = this.#keyEnd;
      this.#nextLine();
      // The dashes of a list may be in the column of its key.
      const isHeld = !this.#isAtEnd && (this.#column > column || (this.#column === column && this.#isDash));
      map[key] = isHeld ? this.#block(column) : this.#nothing(end);
    }
    if (!this.#isAtEnd && this.#column > column) throw NOT_PLAIN;
    return map;
  }

  #key(map: Record<string, unknown>): string {
    const from = this.#at;
    const [, plain, double, single] = this.#match(KEY) ?? [];
    const key = plain ?? double ?? single;
    if (
      key === undefined ||
      key.length > MAX_KEY ||
      Object.hasOwn(map, key) ||
      (plain !== undefined && WORD.test(plain))
    )
      throw NOT_PLAIN;
    const to = from + key.length + (plain === undefined ? 2 : 0);
    this.#keyEnd = to + 1;
    this.#events?.key(key, from, to);
    return key;
  }

  get #isLineEnd(): boolean {
    const code = this.#text.charCodeAt(this.#at);
    return code === 0x0a || code === 0x23 || Number.isNaN(code);
  }

  /** Reads a value that ends on this line, and moves to the next line. */
  #lineValue(): unknown {
    const value = this.#value(PLAIN_BLOCK);
    if (!this.#match(REST)) throw NOT_PLAIN;
    this.#nextLine();
    return value;
  }

  #value(plain: RegExp): unknown {
    const code = this.#text.charCodeAt(this.#at);
    if (code === 0x7b) return this.#flowMap();
    if (code === 0x5b) return this.#flowList();
    this.#count();
    const from = this.#at;
    const value = this.#scalarAt(code, plain);
    this.#events?.scalar(value, from, this.#at);
    return value;
  }

  #scalarAt(code: number, plain: RegExp): unknown {
    const quoted = code === 0x22 || code === 0x27 ? this.#match(QUOTED) : undefined;
    if (quoted) return quoted[1] === undefined ? quoted[2] : unescaped(quoted[1]);
    const match = this.#match(plain);
    // A dash may begin a plain scalar only if the text is unambiguous.
    if (!match || (code === 0x2d && !/^-\w/.test(match[0]))) throw NOT_PLAIN;
    const text = match[0].trimEnd();
    this.#at = match.index + text.length;
    return this.#scalar(text);
  }

  /** Reads a plain scalar by YAML's core schema. */
  #scalar(text: string): unknown {
    if (text === 'true') return true;
    if (text === 'false') return false;
    const isOctal = OCTAL.test(text);
    if (isOctal || INTEGER.test(text) || DECIMAL.test(text)) {
      this.#noted = text;
      return isOctal ? Number.parseInt(text, 8) : Number(text);
    }
    if (WORD.test(text) || NUMBER.test(text)) throw NOT_PLAIN;
    if (isBooleanWord(text)) this.#noted = text;
    return text;
  }

  #note(holder: object, key: string | number): void {
    if (this.#noted === undefined) return;
    noteScalar(holder, key, this.#noted);
    this.#noted = undefined;
  }

  #flowMap(): unknown {
    this.#enter('map');
    const map: Record<string, unknown> = Object.create(null);
    this.#flowItems('}', () => {
      const key = this.#key(map);
      map[key] = this.#value(PLAIN_FLOW);
      this.#note(map, key);
    });
    return map;
  }

  #flowList(): unknown {
    this.#enter('list');
    const list: unknown[] = [];
    this.#flowItems(']', () => {
      if (this.#isKey()) throw NOT_PLAIN;
      this.#note(list, list.push(this.#value(PLAIN_FLOW)) - 1);
    });
    return list;
  }

  #flowItems(end: string, read: () => void): void {
    this.#at++;
    this.#match(SPACES);
    while (this.#text[this.#at] !== end) {
      read();
      this.#match(SPACES);
      const next = this.#text[this.#at];
      if (next !== ',' && next !== end) throw NOT_PLAIN;
      if (next === ',') this.#at++;
      this.#match(SPACES);
    }
    this.#at++;
    this.#leave();
  }

  #enter(what: 'map' | 'list'): void {
    this.#count();
    this.#depth++;
    this.#events?.open(what, this.#at);
  }

  #leave(): void {
    this.#depth--;
    this.#events?.close(this.#at);
  }

  #count(): void {
    this.size++;
    if (this.#depth > MAX_DEPTH) throw TOO_DEEP;
  }

  /** `at`: after the key or the dash. Like the library's, its place is after the spaces that follow. */
  #nothing(at: number): null {
    while (this.#text[at] === ' ') at++;
    this.#count();
    this.#events?.scalar(null, at, at);
    return null;
  }

  /** Moves from the end of a line, or the beginning of the text, to the first character of the next line with content. */
  #nextLine(): void {
    while (this.#match(EMPTY));
    this.#match(SPACES);
    this.#column = this.#at - (this.#text.lastIndexOf('\n', this.#at - 1) + 1);
    // `---` and `...` separate documents.
    if (this.#column === 0 && /[-.]/.test(this.#text[this.#at] ?? '') && !this.#isDash) throw NOT_PLAIN;
  }

  #isKey(): boolean {
    KEY.lastIndex = this.#at;
    return KEY.test(this.#text);
  }

  #match(pattern: RegExp): RegExpExecArray | undefined {
    pattern.lastIndex = this.#at;
    const match = pattern.exec(this.#text) ?? undefined;
    if (match) this.#at = pattern.lastIndex;
    return match;
  }
}

/** The escapes that QUOTED accepts have the same meaning in JSON. */
function unescaped(text: string): string {
  return text.includes('\\') ? (JSON.parse(`"${text}"`) as string) : text;
}
