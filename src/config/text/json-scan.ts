// Scans a JSON text before it is parsed, for syntax errors, excessive depth and duplicate keys.
//
// JSON.parse silently uses the last of duplicate keys, accepts any depth, and does not locate every error.

import { MAX_DEPTH, MAX_MISTAKES, type TextMistake, TOO_DEEP } from './source.js';
import type { ValueEvents } from './value-events.js';

export interface JsonMistakes {
  /** The syntax error, or where the text is nested too deeply. */
  readonly broken?: TextMistake;
  /** Duplicate keys: the first of them, and the number of further ones. */
  readonly repeated: readonly TextMistake[];
  readonly furtherRepeated: number;
  /** Offsets of trailing commas in lists and maps. Protobuf's own parser accepts them, JSON.parse does not. */
  readonly trailingCommas: readonly number[];
}

/**
 * Scans up to the first syntax error or excessive depth.
 * @param events receives the values that precede it
 */
export function scanJson(text: string, events?: ValueEvents): JsonMistakes {
  const scanner = new Scanner(text, events);
  try {
    scanner.scan();
  } catch (error) {
    if (!(error instanceof Broken)) throw error;
    return {
      broken: { offset: error.offset, message: error.message },
      repeated: [],
      furtherRepeated: 0,
      trailingCommas: [],
    };
  }
  const { repeated, furtherRepeated, trailingCommas } = scanner;
  return { repeated, furtherRepeated, trailingCommas };
}

class Broken extends Error {
  readonly offset: number;

  constructor(offset: number, message: string) {
    super(message);
    this.offset = offset;
  }
}

const QUOTE = 0x22;
const COMMA = 0x2c;
const COLON = 0x3a;
const BACKSLASH = 0x5c;
const OPEN_LIST = 0x5b;
const CLOSE_LIST = 0x5d;
const OPEN_MAP = 0x7b;
const CLOSE_MAP = 0x7d;

const ESCAPE = /\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})/y;
const NUMBER = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y;
const WORD = /true|false|null/y;

class Scanner {
  readonly repeated: TextMistake[] = [];
  furtherRepeated = 0;
  readonly trailingCommas: number[] = [];
  readonly #text: string;
  readonly #events: ValueEvents | undefined;
  #at = 0;
  #depth = 0;

  constructor(text: string, events: ValueEvents | undefined) {
    this.#text = text;
    this.#events = events;
  }

  scan(): void {
    this.#value();
    this.#skipSpace();
    if (this.#at < this.#text.length) throw this.#unexpected('the end of the text');
  }

  #value(): void {
    switch (this.#skipSpace()) {
      case OPEN_MAP:
        return this.#map();
      case OPEN_LIST:
        return this.#list();
      case QUOTE:
        return this.#textValue();
    }
    NUMBER.lastIndex = WORD.lastIndex = this.#at;
    const [word] = NUMBER.exec(this.#text) ?? WORD.exec(this.#text) ?? [];
    if (word === undefined) throw this.#unexpected('a value');
    const from = this.#at;
    this.#at += word.length;
    this.#events?.scalar(JSON.parse(word), from, this.#at);
  }

  #textValue(): void {
    const from = this.#at;
    this.#string();
    this.#events?.scalar(this.#textOf(from), from, this.#at);
  }

  /** Returns the decoded string literal from `from` up to the current position. */
  #textOf(from: number): string {
    const raw = this.#text.slice(from + 1, this.#at - 1);
    return raw.includes('\\') ? (JSON.parse(`"${raw}"`) as string) : raw;
  }

  #map(): void {
    this.#enter('map');
    const keys = new Set<string>();
    if (this.#skipSpace() === CLOSE_MAP) return this.#leave();
    for (;;) {
      if (this.#skipSpace() !== QUOTE) throw this.#unexpected('a name in double quotes');
      this.#key(keys);
      if (this.#skipSpace() !== COLON) throw this.#unexpected("':'");
      this.#at++;
      this.#value();
      const next = this.#skipSpace();
      if (next === CLOSE_MAP) return this.#leave();
      if (next !== COMMA) throw this.#unexpected("',' or '}'");
      if (this.#isLast(CLOSE_MAP)) return this.#leave();
    }
  }

  #key(keys: Set<string>): void {
    const from = this.#at;
    this.#string();
    const key = this.#textOf(from);
    if (keys.has(key)) {
      if (this.repeated.length === MAX_MISTAKES) this.furtherRepeated++;
      else this.repeated.push({ offset: from, message: `'${key.slice(0, 100)}' is set twice` });
    }
    keys.add(key);
    this.#events?.key(key, from, this.#at);
  }

  #list(): void {
    this.#enter('list');
    if (this.#skipSpace() === CLOSE_LIST) return this.#leave();
    for (;;) {
      this.#value();
      const next = this.#skipSpace();
      if (next === CLOSE_LIST) return this.#leave();
      if (next !== COMMA) throw this.#unexpected("',' or ']'");
      if (this.#isLast(CLOSE_LIST)) return this.#leave();
    }
  }

  /** Skips a comma. Returns whether it is a trailing one: the closing bracket `end` follows. */
  #isLast(end: number): boolean {
    const comma = this.#at++;
    if (this.#skipSpace() !== end) return false;
    this.trailingCommas.push(comma);
    return true;
  }

  #string(): void {
    const text = this.#text;
    const from = this.#at++;
    for (;;) {
      const code = text.charCodeAt(this.#at);
      if (code === QUOTE) break;
      if (Number.isNaN(code)) throw new Broken(from, 'invalid JSON: unterminated string');
      if (code === BACKSLASH) {
        ESCAPE.lastIndex = this.#at;
        const found = ESCAPE.exec(text);
        if (!found) throw new Broken(this.#at, 'invalid JSON: unknown escape sequence');
        this.#at += found[0].length;
      } else if (code < 0x20) {
        const what = code === 0x0a ? 'line end' : 'control character';
        throw new Broken(this.#at, `invalid JSON: ${what} in a string`);
      } else this.#at++;
    }
    this.#at++;
  }

  #enter(what: 'map' | 'list'): void {
    if (++this.#depth > MAX_DEPTH) throw new Broken(this.#at, TOO_DEEP);
    this.#events?.open(what, this.#at);
    this.#at++;
  }

  #leave(): void {
    this.#depth--;
    this.#at++;
    this.#events?.close(this.#at);
  }

  /** Skips white space. Returns the code of the next character; NaN at the end. */
  #skipSpace(): number {
    const text = this.#text;
    for (;;) {
      const code = text.charCodeAt(this.#at);
      if (code !== 0x20 && code !== 0x0a && code !== 0x0d && code !== 0x09) return code;
      this.#at++;
    }
  }

  #unexpected(expected: string): Broken {
    const found = String.fromCodePoint(this.#text.codePointAt(this.#at) ?? 0);
    if (found === '\0') return new Broken(this.#at, `invalid JSON: expected ${expected}, found the end of the text`);
    return new Broken(
      this.#at,
      `invalid JSON: expected ${expected}, found ${JSON.stringify(found)}${this.#hint(found)}`,
    );
  }

  /** Returns a hint derived from the unexpected character. */
  #hint(found: string): string {
    if (found === '/' || found === '#') return '; JSON has no comments';
    const before = this.#text.slice(0, this.#at).trimEnd();
    const isYaml = before === '' && /[a-z-]/i.test(found);
    return isYaml ? '; a .json file contains JSON; use .yaml for YAML' : '';
  }
}
