// The head or the trailers of a message as a module reads and changes them, with Envoy's names: `:path`, `:authority`, `:status`.

import { keyOf } from '../../../script/header-keys.js';
import { type HeaderBlock, type HeaderKey, headerKey, methodOf, requestScheme } from '../../../sdk.js';
import { Result } from '../../../wasm/abi.js';
import type { MutableHeaderMap } from '../../../wasm/contexts/header-map.js';
import type { Pairs } from '../../../wasm/vm/pairs.js';

export const enum BlockKind {
  Request = 0,
  Response = 1,
  Trailers = 2,
}

const HOST = headerKey('host');
const PSEUDO: readonly (readonly string[])[] = [[':authority', ':path', ':method', ':scheme'], [':status'], []];
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

/** The message whose fields a module changes. */
export interface FieldOwner {
  /** Called after a change. */
  changed(): void;
  /** Called when a module sets what cannot be sent, such as a value with a line break. */
  refused(): void;
}

export class BlockHeaders implements MutableHeaderMap {
  readonly #block: HeaderBlock;
  readonly #kind: BlockKind;
  /** Undefined: for reading only. */
  readonly #owner: FieldOwner | undefined;

  constructor(block: HeaderBlock, kind: BlockKind, owner?: FieldOwner) {
    this.#block = block;
    this.#kind = kind;
    this.#owner = owner;
  }

  get size(): number {
    return this.pairs().length;
  }

  get(name: string): string | undefined {
    if (name.startsWith(':')) return this.#pseudo(name);
    // The authority has another name.
    if (name === 'host' && this.#kind === BlockKind.Request) name = ':authority';
    if (name === ':authority') return this.#block.get(HOST);
    const key = keyOrUndefined(name);
    const index = key === undefined ? -1 : this.#block.find(key);
    return index < 0 ? undefined : this.#block.value(index);
  }

  pairs(): [string, string][] {
    const block = this.#block;
    const pairs: [string, string][] = [];
    for (const name of PSEUDO[this.#kind]!) {
      const value = this.#pseudo(name);
      if (value !== undefined) pairs.push([name, value]);
    }
    for (let index = 0; index < block.size; index++) {
      if (block.isRemoved(index) || (this.#kind === BlockKind.Request && block.id(index) === HOST.id)) continue;
      pairs.push([block.name(index), block.value(index)]);
    }
    return pairs;
  }

  add(name: string, value: string): Result {
    if (isPseudo(name)) {
      const before = this.get(name);
      return this.#setPseudo(name, before === undefined ? value : `${before},${value}`);
    }
    if (name === 'content-length') return this.replace(name, value);
    return this.#change(name, (key) => this.#block.add(key, value));
  }

  replace(name: string, value: string): Result {
    if (isPseudo(name)) return this.#setPseudo(name, value);
    if (name === 'content-length' && !/^\d{1,15}$/.test(value)) return Result.BadArgument;
    return this.#change(name, (key) => this.#block.set(key, value));
  }

  remove(name: string): Result {
    if (name === ':authority' || name === 'host') name = 'host';
    // A head without them could not be sent.
    else if (name.startsWith(':')) return this.#pseudo(name) === undefined ? Result.Ok : Result.BadArgument;
    return this.#change(name, (key) => this.#block.remove(key));
  }

  setPairs(pairs: Pairs): Result {
    const names = new Set(pairs.map(([name]) => name));
    for (const [name] of this.pairs()) if (!name.startsWith(':') && !FRAMING.has(name)) this.remove(name);
    if (this.#kind === BlockKind.Request && !names.has(':authority')) this.remove(':authority');
    let result = Result.Ok;
    for (const [name, value] of pairs) {
      const one = isPseudo(name) ? this.replace(name, value) : this.add(name, value);
      if (one !== Result.Ok) result = one;
    }
    return result;
  }

  #pseudo(name: string): string | undefined {
    const block = this.#block;
    if (this.#kind === BlockKind.Response) return name === ':status' ? String(block.status) : undefined;
    if (this.#kind !== BlockKind.Request) return undefined;
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

  #setPseudo(name: string, value: string): Result {
    const block = this.#block;
    return this.#orRefused(() => {
      if (this.#kind === BlockKind.Response && name === ':status') block.setStatus(Number(value));
      else if (this.#kind !== BlockKind.Request) return false;
      else if (name === ':path') block.setPath(value);
      else if (name === ':method') block.setMethod(methodOf(value), value);
      else if (name === ':authority' || name === 'host') block.set(HOST, value);
      else if (name === ':scheme' && (value === 'http' || value === 'https')) block.scheme = value;
      else return false;
      return true;
    });
  }

  #change(name: string, act: (key: HeaderKey) => void): Result {
    const isFraming = FRAMING.has(name) || (name === 'content-length' && this.#kind === BlockKind.Trailers);
    const key = isFraming ? undefined : keyOrUndefined(name);
    if (key === undefined) return Result.BadArgument;
    return this.#orRefused(() => {
      act(key);
      return true;
    });
  }

  /**
   * A field that cannot be sent is not set, and as in Envoy the request fails, not the call: modules take a failure for a defect of the
   * host and end, so that one client's value would end the module for all.
   */
  #orRefused(act: () => boolean): Result {
    try {
      if (!act()) return Result.BadArgument;
    } catch (error) {
      if (!(error instanceof TypeError || error instanceof RangeError)) throw error;
      this.#owner?.refused();
      return Result.Ok;
    }
    this.#owner?.changed();
    return Result.Ok;
  }
}

function isPseudo(name: string): boolean {
  return name.startsWith(':') || name === 'host';
}

function keyOrUndefined(name: string): HeaderKey | undefined {
  try {
    return keyOf(name);
  } catch {
    return undefined;
  }
}
