// Reads JSON as Envoy's transcoder does: it also accepts keys without quotes, single quotes, and a comma before the closing bracket. The
// texts of errors are Envoy's too.

import { JsonDouble, JsonObject, type JsonValue } from './json-value.js';

/** Objects and arrays within each other. */
export const MAX_DEPTH = 100;
/** Bytes around a mistake that an error shows. */
const SHOWN_BYTES = 20;

export interface ParsedJson {
  /** The document, or what has been read of it before an error. */
  readonly value: JsonValue | undefined;
  readonly error: string | undefined;
  /** The document ends too early: an error of its values comes first. */
  readonly isTruncated: boolean;
}

/** Parses a document. `text`: one character a byte; `validBytes`: how many of them are UTF-8. */
export function parseJson(text: string, validBytes = text.length): ParsedJson {
  const parser = new Parser(text, validBytes);
  const value = parser.document();
  return { value, error: parser.error, isTruncated: parser.isTruncated };
}

class Parser {
  readonly #text: string;
  readonly #end: number;
  /** Bytes after the end are not UTF-8. */
  readonly #isCut: boolean;
  #at = 0;
  #depth = 0;
  error: string | undefined;
  isTruncated = false;

  constructor(text: string, validBytes: number) {
    this.#text = text;
    this.#end = validBytes;
    this.#isCut = validBytes < text.length;
  }

  document(): JsonValue | undefined {
    const value = this.#value('');
    if (this.error !== undefined) return value;
    this.#skipSpace();
    if (this.#at < this.#end) this.#fail('Parsing terminated before end of input.');
    else if (this.#isCut) this.#failLater('');
    return value;
  }

  // ── Errors ───────────────────────────────────────────────────────────────────────────────────────────────────────

  /** `from`: where the shown text may begin. */
  #fail(message: string, from = 0): undefined {
    if (this.error !== undefined) return undefined;
    const begin = Math.max(from, this.#at - SHOWN_BYTES);
    const shown = this.#text.slice(begin, Math.min(this.#text.length, this.#at + SHOWN_BYTES));
    this.error = `${message}\n${shown}\n${' '.repeat(this.#at - begin)}^`;
    return undefined;
  }

  /** Reports a mistake that more input might repair. */
  #failLater(message: string): undefined {
    if (this.error !== undefined) return undefined;
    this.isTruncated = true;
    return this.#fail(this.#isCut ? 'Encountered non UTF-8 code points.' : message, this.#at);
  }

  /** Reports a character that begins no token, or the end. */
  #failUnknown(message: string): undefined {
    return this.#failLater(this.#at >= this.#end ? `Unexpected end of string. ${message}` : message);
  }

  // ── Values ───────────────────────────────────────────────────────────────────────────────────────────────────────

  #value(key: string): JsonValue | undefined {
    this.#skipSpace();
    const code = this.#code();
    switch (code) {
      case OPEN_BRACE:
        return this.#object(key);
      case OPEN_BRACKET:
        return this.#array(key);
      case QUOTE:
      case APOSTROPHE:
        return this.#string();
    }
    if (code === MINUS || isDigit(code)) return this.#number();
    for (const [word, value] of WORDS) {
      if (!this.#text.startsWith(word, this.#at) || this.#at + word.length > this.#end) continue;
      this.#at += word.length;
      return value;
    }
    if (!isPunctuation(code) && !isLetter(code)) return this.#failUnknown('Expected a value.');
    // It might be the beginning of a word.
    if (this.#end - this.#at < LONGEST_WORD) return this.#failLater('Unexpected token.');
    return this.#fail('Unexpected token.');
  }

  #enter(key: string): boolean {
    if (++this.#depth <= MAX_DEPTH) return true;
    this.error ??= `Message too deep. Max recursion depth reached for key '${key}'`;
    return false;
  }

  #object(key: string): JsonValue | undefined {
    if (!this.#enter(key)) return undefined;
    this.#at++;
    const object = new JsonObject();
    for (;;) {
      this.#skipSpace();
      const code = this.#code();
      if (code === CLOSE_BRACE) break;
      const name = this.#key(code);
      if (name === undefined) return object;
      this.#skipSpace();
      if (this.#code() !== COLON) {
        this.#unexpected('Expected : between key:value pair.');
        return object;
      }
      this.#at++;
      const value = this.#value(name);
      if (value !== undefined) object.add(name, value);
      if (this.error !== undefined) return object;
      this.#skipSpace();
      const next = this.#code();
      if (next === CLOSE_BRACE) break;
      if (next !== COMMA) {
        this.#unexpected('Expected , or } after key:value pair.');
        return object;
      }
      this.#at++;
    }
    this.#at++;
    this.#depth--;
    return object;
  }

  #array(key: string): JsonValue | undefined {
    if (!this.#enter(key)) return undefined;
    this.#at++;
    const array: JsonValue[] = [];
    for (;;) {
      this.#skipSpace();
      const code = this.#code();
      if (code === CLOSE_BRACKET) break;
      if (!isToken(code)) {
        this.#failUnknown('Expected a value or ] within an array.');
        return array;
      }
      const value = this.#value('');
      if (value !== undefined) array.push(value);
      if (this.error !== undefined) return array;
      this.#skipSpace();
      const next = this.#code();
      if (next === CLOSE_BRACKET) break;
      if (next !== COMMA) {
        this.#unexpected('Expected , or ] after array value.');
        return array;
      }
      this.#at++;
    }
    this.#at++;
    this.#depth--;
    return array;
  }

  /** Reports a token where another one must be. */
  #unexpected(message: string): void {
    if (isToken(this.#code())) this.#fail(message);
    else this.#failUnknown(message);
  }

  #key(code: number): string | undefined {
    if (code === QUOTE || code === APOSTROPHE) return this.#string();
    if (!isLetter(code)) {
      this.#unexpected('Expected an object key or }.');
      return undefined;
    }
    const start = this.#at;
    let at = start;
    while (at < this.#end && (isLetter(this.#text.charCodeAt(at)) || isDigit(this.#text.charCodeAt(at)))) at++;
    this.#at = at;
    const name = this.#text.slice(start, at);
    if (name === 'true' || name === 'false' || name === 'null') return this.#fail('Expected an object key or }.');
    return name;
  }

  #string(): string | undefined {
    const text = this.#text;
    const quote = text.charCodeAt(this.#at++);
    let out = '';
    let from = this.#at;
    for (;;) {
      if (this.#at >= this.#end) return this.#failLater('Closing quote expected in string.');
      const code = text.charCodeAt(this.#at);
      if (code === quote) {
        out += text.slice(from, this.#at++);
        return out;
      }
      if (code !== BACKSLASH) {
        this.#at++;
        continue;
      }
      out += text.slice(from, this.#at);
      const escaped = this.#escape();
      if (escaped === undefined) return undefined;
      out += escaped;
      from = this.#at;
    }
  }

  #escape(): string | undefined {
    const left = this.#end - this.#at;
    if (left === 1) return this.#failLater('Closing quote expected in string.');
    const kind = this.#text[this.#at + 1]!;
    if (kind !== 'u') {
      this.#at += 2;
      return ESCAPES[kind] ?? kind;
    }
    if (left < ESCAPE_BYTES) return this.#failLater('Illegal hex string.');
    let code = this.#hex(this.#at + 2);
    if (code < 0) return this.#fail('Invalid escape sequence.');
    if (code >= 0xdc00 && code <= 0xdfff) return this.#fail('Invalid unicode code point.');
    if (code >= 0xd800 && code <= 0xdbff) {
      if (left < 2 * ESCAPE_BYTES) return this.#failLater('Missing low surrogate.');
      if (!this.#text.startsWith('\\u', this.#at + ESCAPE_BYTES)) return this.#fail('Missing low surrogate.');
      const low = this.#hex(this.#at + ESCAPE_BYTES + 2);
      if (low < 0) return this.#fail('Invalid escape sequence.');
      if (low < 0xdc00 || low > 0xdfff) return this.#fail('Invalid low surrogate.');
      code = 0x10000 + ((code & 0x3ff) << 10) + (low & 0x3ff);
      this.#at += ESCAPE_BYTES;
    }
    this.#at += ESCAPE_BYTES;
    return code < 128 ? String.fromCharCode(code) : Buffer.from(String.fromCodePoint(code)).toString('latin1');
  }

  /** Returns the number of four hexadecimal digits, or -1. */
  #hex(at: number): number {
    const digits = this.#text.slice(at, at + 4);
    return /^[0-9a-fA-F]{4}$/.test(digits) ? Number.parseInt(digits, 16) : -1;
  }

  #number(): JsonValue | undefined {
    const start = this.#at;
    let at = start;
    let isDouble = false;
    for (; at < this.#end; at++) {
      const code = this.#text.charCodeAt(at);
      if (code === DOT || code === LOWER_E || code === UPPER_E) isDouble = true;
      else if (!isDigit(code) && code !== PLUS && code !== MINUS && code !== LOWER_X) break;
    }
    const isLast = at === this.#end;
    const text = this.#text.slice(start, at);
    const from = isLast ? start : 0;
    if (isLast) this.isTruncated = true;
    const digits = text.charCodeAt(0) === MINUS ? text.slice(1) : text;
    if (!isDouble && digits.length > 1 && digits.charCodeAt(0) === ZERO)
      return this.#fail('Octal/hex numbers are not valid JSON values.', from);
    const value = isDouble ? toDouble(text) : (toInteger(text) ?? toDouble(text));
    if (value === undefined) return this.#fail('Unable to parse number.', from);
    if (value instanceof JsonDouble && !Number.isFinite(value.value))
      return this.#fail('Number exceeds the range of double.', from);
    this.isTruncated = false;
    this.#at = at;
    return value;
  }

  // ── Characters ───────────────────────────────────────────────────────────────────────────────────────────────────

  #code(): number {
    return this.#at < this.#end ? this.#text.charCodeAt(this.#at) : -1;
  }

  #skipSpace(): void {
    while (this.#at < this.#end && isSpace(this.#text.charCodeAt(this.#at))) this.#at++;
  }
}

function toInteger(text: string): JsonValue | undefined {
  if (text.length > 20 || !/^-?[0-9]+$/.test(text)) return undefined;
  const number = Number(text);
  if (Number.isSafeInteger(number)) return Object.is(number, -0) ? 0 : number;
  const big = BigInt(text);
  return big > MAX_UINT64 || big < MIN_INT64 ? undefined : big;
}

function toDouble(text: string): JsonDouble | undefined {
  return /^-?[0-9]+(\.[0-9]*)?([eE][+-]?[0-9]+)?$/.test(text) ? new JsonDouble(Number(text)) : undefined;
}

const MAX_UINT64 = 2n ** 64n - 1n;
const MIN_INT64 = -(2n ** 63n);

const WORDS: readonly (readonly [string, JsonValue])[] = [
  ['true', true],
  ['false', false],
  ['null', null],
];
const LONGEST_WORD = 5;
const ESCAPES: { readonly [kind: string]: string } = {
  b: '\b',
  f: '\f',
  n: '\n',
  r: '\r',
  t: '\t',
  v: '\v',
};
/** Length of an escape such as \u00e9. */
const ESCAPE_BYTES = 6;

const QUOTE = 34;
const APOSTROPHE = 39;
const PLUS = 43;
const COMMA = 44;
const MINUS = 45;
const DOT = 46;
const ZERO = 48;
const COLON = 58;
const UPPER_E = 69;
const OPEN_BRACKET = 91;
const BACKSLASH = 92;
const CLOSE_BRACKET = 93;
const LOWER_E = 101;
const LOWER_X = 120;
const OPEN_BRACE = 123;
const CLOSE_BRACE = 125;

export function isSpace(code: number): boolean {
  return code === 32 || (code >= 9 && code <= 13);
}

function isDigit(code: number): boolean {
  return code >= 48 && code <= 57;
}

function isLetter(code: number): boolean {
  return (code >= 97 && code <= 122) || (code >= 65 && code <= 90) || code === 95 || code === 36;
}

function isPunctuation(code: number): boolean {
  switch (code) {
    case COMMA:
    case COLON:
    case OPEN_BRACE:
    case CLOSE_BRACE:
    case OPEN_BRACKET:
    case CLOSE_BRACKET:
      return true;
    default:
      return false;
  }
}

/** Returns whether a character may begin a token. */
function isToken(code: number): boolean {
  return (
    isPunctuation(code) || isLetter(code) || isDigit(code) || code === MINUS || code === QUOTE || code === APOSTROPHE
  );
}
