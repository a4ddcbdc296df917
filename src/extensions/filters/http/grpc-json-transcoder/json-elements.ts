// Finds the elements of a JSON array that arrives in pieces, so that each can be parsed when it is complete.

import { isSpace, MAX_DEPTH, parseJson } from './json-parser.js';

const enum State {
  /** Before the opening bracket. */
  Start = 0,
  /** Before an element, or the closing bracket. */
  Value = 1,
  Element = 2,
  /** After an element. */
  After = 3,
  /** After the closing bracket. */
  End = 4,
}

const AN_OBJECT = 'Expected an array instead of an object';
const A_SCALAR = 'Expected an array instead of a scalar value.';

export class JsonElements {
  #state = State.Start;
  /** What has arrived of an element before #text. It is only appended to: to look into it would copy all of it for each piece. */
  #before = '';
  /** Bytes of the last piece that have not been used. */
  #text = '';
  /** Offset of the next byte to look at. */
  #at = 0;
  #depth = 0;
  /** The quote that ends the current string; 0: not in a string. */
  #quote = 0;
  /** A mistake of the stream itself. */
  error: string | undefined;

  get heldBytes(): number {
    return this.#before.length + this.#text.length;
  }

  /** Called when next() has looked at everything before. */
  push(text: string): void {
    this.#before += this.#text;
    // An escape may have skipped the first byte.
    this.#at -= this.#text.length;
    this.#text = text;
  }

  /** Returns the text of the next complete element; undefined if there is none, and after an error. */
  next(): string | undefined {
    while (this.error === undefined && this.#at < this.#text.length) {
      const code = this.#text.charCodeAt(this.#at);
      if (this.#state === State.Element) {
        const found = this.#within(code);
        if (found !== undefined) return found;
      } else if (isSpace(code)) this.#drop();
      else this.#between(code);
    }
    return undefined;
  }

  /** Called at the end of the stream. */
  end(): void {
    if (this.error !== undefined || this.#state === State.End) return;
    if (this.#state === State.Start) this.error = AN_OBJECT;
    else if (this.#state === State.After) this.error = parseJson('[0 ').error;
    // The parser knows what is missing.
    else this.error = parseJson(`[${this.#before}${this.#text}`).error;
  }

  /** Looks at a byte outside of elements. */
  #between(code: number): void {
    const isClose = code === CLOSE;
    switch (this.#state) {
      case State.Start:
        if (code !== OPEN) return this.#refuseDocument(code);
        this.#state = State.Value;
        return this.#drop();
      case State.Value:
        if (!isClose) this.#state = State.Element;
        else this.#end();
        return;
      case State.After:
        if (isClose) return this.#end();
        if (code !== COMMA) return this.#fail('Expected , or ] after array value.');
        this.#state = State.Value;
        return this.#drop();
      default:
        this.#fail('Parsing terminated before end of input.');
    }
  }

  /** Looks at the next byte of an element. Returns the element if it ends there. */
  #within(code: number): string | undefined {
    if (this.#quote !== 0) {
      if (code === BACKSLASH) this.#at++;
      else if (code === this.#quote) this.#quote = 0;
    } else if (code === QUOTE || code === APOSTROPHE) this.#quote = code;
    else if (code === OPEN || code === OPEN_OBJECT) {
      if (++this.#depth >= MAX_DEPTH) this.#fail('Message too deep. Max recursion depth reached');
    } else if (this.#depth === 0) {
      // Only a bracket or a separator ends a scalar.
      if (code === COMMA || code === CLOSE || isSpace(code)) return this.#take(this.#at);
    } else if ((code === CLOSE || code === CLOSE_OBJECT) && --this.#depth === 0) return this.#take(this.#at + 1);
    this.#at++;
    return undefined;
  }

  #take(end: number): string {
    const element = this.#before + this.#text.slice(0, end);
    this.#before = '';
    this.#text = this.#text.slice(end);
    this.#at = 0;
    this.#state = State.After;
    return element;
  }

  #end(): void {
    this.#state = State.End;
    this.#drop();
  }

  /** Drops the current byte. */
  #drop(): void {
    this.#text = this.#text.slice(1);
    this.#at = 0;
  }

  /** Refuses a document that is not an array. */
  #refuseDocument(code: number): void {
    const { error, isTruncated } = parseJson(this.#text);
    if (error !== undefined && !isTruncated) this.error = error;
    else this.error = code === OPEN_OBJECT ? AN_OBJECT : A_SCALAR;
  }

  #fail(message: string): void {
    this.error = `${message}\n${this.#text.slice(this.#at, this.#at + 20)}\n^`;
  }
}

const QUOTE = 34;
const APOSTROPHE = 39;
const COMMA = 44;
const OPEN = 91;
const BACKSLASH = 92;
const CLOSE = 93;
const OPEN_OBJECT = 123;
const CLOSE_OBJECT = 125;
