// headers(), trailers(): the fields of a message, and a request's method, path, host and scheme or a response's status as fields.

import { keyOf } from '../../../../script/header-keys.js';
import {
  type HeaderBlock,
  type HeaderKey,
  LuaError,
  type LuaMethod,
  methodOf,
  requestScheme,
} from '../../../../sdk.js';
import { LuaClass } from './classes.js';
import { OUT_OF_SCOPE } from './scope.js';

export const enum HeadKind {
  Request = 0,
  Response = 1,
  Trailers = 2,
}

/** The holder of a message, which knows whether its head can still be changed. */
export interface HeadOwner {
  readonly canChange: boolean;
  changed(): void;
}

const HOST = keyOf('host');
/** Follow from the connection and from how the body is framed. */
const FRAMING = new Set([
  'transfer-encoding',
  'connection',
  'keep-alive',
  'upgrade',
  'te',
  'trailer',
  'proxy-connection',
]);

export class LuaHeaders {
  readonly #kind: HeadKind;
  readonly #owner: HeadOwner;
  #block: HeaderBlock | undefined;
  /** A script iterates over the fields: they cannot change. */
  isIterated = false;

  constructor(block: HeaderBlock, kind: HeadKind, owner: HeadOwner) {
    this.#block = block;
    this.#kind = kind;
    this.#owner = owner;
  }

  get lua(): LuaClass {
    return LuaClass.Headers;
  }

  /** The block belongs to others. */
  end(): void {
    this.#block = undefined;
  }

  get block(): HeaderBlock {
    if (this.#block === undefined) throw new LuaError(OUT_OF_SCOPE);
    return this.#block;
  }

  get(name: string): string | undefined {
    const values = this.values(name.toLowerCase());
    return values.length === 0 ? undefined : values.length === 1 ? values[0] : values.join(',');
  }

  getAtIndex(name: string, index: number): string | undefined {
    const value = this.values(name.toLowerCase())[Math.trunc(index)];
    return value === '' ? undefined : value;
  }

  getNumValues(name: string): number {
    return this.values(name.toLowerCase()).length;
  }

  add(name: string, value: string): void {
    this.#checkChange();
    const lower = name.toLowerCase();
    if (lower.startsWith(':') || lower === 'host') {
      const before = this.values(lower)[0];
      return this.#replacePseudo(lower, before === undefined ? value : `${before},${value}`);
    }
    if (lower === 'content-length') return this.#setField(lower, value);
    const key = writable(lower);
    orLuaError(() => this.block.add(key, value));
  }

  replace(name: string, value: string): void {
    this.#checkChange();
    const lower = name.toLowerCase();
    if (lower.startsWith(':') || lower === 'host') this.#replacePseudo(lower, value);
    else this.#setField(lower, value);
  }

  remove(name: string): void {
    this.#checkChange();
    const lower = name.toLowerCase();
    if (lower === ':authority' || lower === 'host') this.block.remove(HOST);
    else if (lower.startsWith(':')) throw new LuaError(`${lower} cannot be removed`);
    else if (!FRAMING.has(lower)) this.block.remove(writable(lower));
  }

  setHttp1ReasonPhrase(phrase: string): void {
    this.#checkChange();
    if (this.#kind !== HeadKind.Response) return;
    if (!/^[\t\x20-\x7e\x80-\xff]*$/.test(phrase)) throw new LuaError('a reason phrase is one line');
    this.block.setReason(phrase);
  }

  pairs(): HeaderIterator {
    if (this.isIterated) throw new LuaError('cannot create a second iterator before completing the first');
    this.isIterated = true;
    return new HeaderIterator(this, this.#entries());
  }

  /** Returns the values of a field, given in lower case. */
  values(name: string): string[] {
    const { block } = this;
    if (name.startsWith(':')) {
      const value = this.#pseudo(name);
      return value === undefined ? [] : [value];
    }
    const found: string[] = [];
    const key = knownKey(name);
    if (key === undefined) return found;
    if (this.#kind === HeadKind.Request && key.id === HOST.id) return found;
    for (let index = block.find(key); index >= 0; index = block.findNext(key, index)) found.push(block.value(index));
    return found;
  }

  #pseudo(name: string): string | undefined {
    const { block } = this;
    if (this.#kind === HeadKind.Response) return name === ':status' ? String(block.status) : undefined;
    if (this.#kind !== HeadKind.Request) return undefined;
    switch (name) {
      case ':path':
        return block.pathText();
      case ':method':
        return block.methodText();
      case ':authority':
        return block.get(HOST);
      case ':scheme':
        return requestScheme(block);
      default:
        return undefined;
    }
  }

  #entries(): string[] {
    const { block } = this;
    const entries: string[] = [];
    const pseudo =
      this.#kind === HeadKind.Request
        ? [':authority', ':path', ':method', ':scheme']
        : this.#kind === HeadKind.Response
          ? [':status']
          : [];
    for (const name of pseudo) {
      const value = this.#pseudo(name);
      if (value !== undefined) entries.push(name, value);
    }
    for (let index = 0; index < block.size; index++) {
      if (block.isRemoved(index) || (this.#kind === HeadKind.Request && block.id(index) === HOST.id)) continue;
      entries.push(block.name(index), block.value(index));
    }
    return entries;
  }

  #replacePseudo(name: string, value: string): void {
    const { block } = this;
    orLuaError(() => {
      if (name === ':status' && this.#kind === HeadKind.Response) block.setStatus(Number(value));
      else if (this.#kind !== HeadKind.Request) throw new LuaError(`${name} cannot be set here`);
      else if (name === ':path') block.setPath(value);
      else if (name === ':method') block.setMethod(methodOf(value), value);
      else if (name === ':authority' || name === 'host') block.set(HOST, value);
      else if (name === ':scheme' && (value === 'http' || value === 'https')) block.scheme = value;
      else throw new LuaError(`${name} cannot be set to '${value}'`);
    });
  }

  #setField(name: string, value: string): void {
    const key = writable(name);
    if (name === 'content-length' && !/^\d{1,15}$/.test(value))
      throw new LuaError(`'${value}' is not a content-length`);
    orLuaError(() => this.block.set(key, value));
  }

  #checkChange(): void {
    void this.block;
    if (this.isIterated) throw new LuaError('header map cannot be modified while iterating');
    if (!this.#owner.canChange) throw new LuaError('header map can no longer be modified');
    this.#owner.changed();
  }
}

/** An iteration over the fields as they were when it began. */
export class HeaderIterator {
  readonly #headers: LuaHeaders;
  readonly #entries: readonly string[];
  #at = 0;

  constructor(headers: LuaHeaders, entries: readonly string[]) {
    this.#headers = headers;
    this.#entries = entries;
  }

  get lua(): LuaClass {
    return LuaClass.HeaderIterator;
  }

  next(): readonly string[] | undefined {
    void this.#headers.block;
    if (this.#at < this.#entries.length) {
      this.#at += 2;
      return this.#entries.slice(this.#at - 2, this.#at);
    }
    this.#headers.isIterated = false;
    return undefined;
  }
}

const { prototype } = LuaHeaders;

export const HEADERS: readonly LuaMethod[] = [
  ['get', 's', prototype.get],
  ['getAtIndex', 'sn', prototype.getAtIndex],
  ['getNumValues', 's', prototype.getNumValues],
  ['add', 'ss', prototype.add],
  ['replace', 'ss', prototype.replace],
  ['remove', 's', prototype.remove],
  ['setHttp1ReasonPhrase', 's', prototype.setHttp1ReasonPhrase],
  ['__pairs', '*', prototype.pairs],
];

export const HEADER_ITERATOR: readonly LuaMethod[] = [['next', '', HeaderIterator.prototype.next]];

/** Returns undefined for what is not a valid header name: no message has it. */
function knownKey(name: string): HeaderKey | undefined {
  try {
    return keyOf(name);
  } catch {
    return undefined;
  }
}

/** Returns the key of a field, given in lower case, that a script may change. */
export function writable(name: string): HeaderKey {
  if (FRAMING.has(name)) throw new LuaError(`'${name}' follows from the connection and the body`);
  return orLuaError(() => keyOf(name));
}

/** A field that cannot be sent is the script's mistake. */
export function orLuaError<T>(act: () => T): T {
  try {
    return act();
  } catch (error) {
    if (error instanceof TypeError || error instanceof RangeError) throw new LuaError(error.message);
    throw error;
  }
}
