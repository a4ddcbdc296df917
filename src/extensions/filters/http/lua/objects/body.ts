// body(), and the pieces of bodyChunks().

import { LuaError, type LuaMethod } from '../../../../sdk.js';
import { LuaClass } from './classes.js';
import { OUT_OF_SCOPE } from './scope.js';

export class LuaBody {
  /** One character per byte; undefined: the message has gone. */
  #text: string | undefined;
  /** Undefined: as received. */
  replacement: Buffer | undefined;
  readonly #replaced: (length: number) => void;

  /** `replaced`: called with the length of bytes that the script has set. */
  constructor(bytes: Uint8Array, replaced: (length: number) => void) {
    this.#text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString('latin1');
    this.#replaced = replaced;
  }

  get lua(): LuaClass {
    return LuaClass.Body;
  }

  /** The script can no longer use the bytes, which its collector would free late: it does not see how large they are. */
  end(): void {
    this.#text = undefined;
  }

  get #live(): string {
    if (this.#text === undefined) throw new LuaError(OUT_OF_SCOPE);
    return this.#text;
  }

  length(): number {
    return this.#live.length;
  }

  getBytes(index: number, length: number): string {
    const text = this.#live;
    if (!(index >= 0 && length >= 0 && index + length <= text.length))
      throw new LuaError('index/length must be >= 0 and (index + length) must be <= buffer size');
    return text.slice(index, index + length);
  }

  setBytes(text: string): number {
    void this.#live;
    this.#text = text;
    this.replacement = Buffer.from(text, 'latin1');
    this.#replaced(text.length);
    return text.length;
  }
}

/** The iteration of bodyChunks(). */
export class BodyChunks {
  readonly #next: () => unknown;

  constructor(next: () => unknown) {
    this.#next = next;
  }

  get lua(): LuaClass {
    return LuaClass.BodyChunks;
  }

  next(): unknown {
    return this.#next();
  }
}

export const BODY: readonly LuaMethod[] = [
  ['length', '', LuaBody.prototype.length],
  ['getBytes', 'nn', LuaBody.prototype.getBytes],
  ['setBytes', 's', LuaBody.prototype.setBytes],
];

export const BODY_CHUNKS: readonly LuaMethod[] = [['next', '', BodyChunks.prototype.next]];
