// metadata(), filterContext(), and dynamic metadata of requests and connections.

import { LuaError, type LuaMethod } from '../../../../sdk.js';
import { fromLua, type JsonStruct, structToLua, toLua } from '../values.js';
import { LuaClass } from './classes.js';
import type { InfoScope } from './scope.js';

/** A structure of the configuration. */
export class LuaMetadata {
  readonly #struct: JsonStruct;
  isIterated = false;

  constructor(struct: JsonStruct | undefined) {
    this.#struct = struct ?? {};
  }

  get lua(): LuaClass {
    return LuaClass.Metadata;
  }

  get(key: string): unknown {
    return Object.hasOwn(this.#struct, key) ? toLua(this.#struct[key]) : undefined;
  }

  pairs(): MetadataIterator {
    return new MetadataIterator(this, Object.entries(this.#struct));
  }
}

/** What an iteration belongs to. */
interface Iterated {
  isIterated: boolean;
}

export class MetadataIterator {
  readonly #owner: Iterated;
  readonly #entries: readonly (readonly [string, unknown])[];
  #at = 0;

  constructor(owner: Iterated, entries: readonly (readonly [string, unknown])[]) {
    if (owner.isIterated) throw new LuaError('cannot create a second iterator before completing the first');
    owner.isIterated = true;
    this.#owner = owner;
    this.#entries = entries;
  }

  get lua(): LuaClass {
    return LuaClass.MetadataIterator;
  }

  next(): unknown {
    const entry = this.#entries[this.#at++];
    if (entry === undefined) {
      this.#owner.isIterated = false;
      return undefined;
    }
    return [toLua(entry[0]), toLua(entry[1] as JsonStruct)];
  }
}

/** Dynamic metadata of a request: a structure for each namespace. */
export class LuaDynamicMetadata {
  readonly #scope: InfoScope;
  isIterated = false;

  constructor(scope: InfoScope) {
    this.#scope = scope;
  }

  get lua(): LuaClass {
    return LuaClass.DynamicMetadata;
  }

  get(namespace: string): unknown {
    const struct = this.#scope.info.dynamicMetadata?.get(namespace);
    return struct && structToLua(struct as JsonStruct);
  }

  set(namespace: string, key: string, value: unknown): void {
    if (this.isIterated) throw new LuaError('dynamic metadata map cannot be modified while iterating');
    this.#scope.info.ownDynamicMetadata().merge(namespace, { [key]: fromLua(value) } as never);
  }

  pairs(): MetadataIterator {
    return new MetadataIterator(this, [...(this.#scope.info.dynamicMetadata?.entries() ?? [])]);
  }
}

/** Dynamic metadata of a connection, which network filters set. */
export class LuaConnectionMetadata {
  readonly #scope: InfoScope;
  isIterated = false;

  constructor(scope: InfoScope) {
    this.#scope = scope;
  }

  get lua(): LuaClass {
    return LuaClass.ConnectionMetadata;
  }

  get(namespace: string): unknown {
    const struct = this.#scope.info.downstream?.dynamicMetadata?.get(namespace);
    return struct && structToLua(struct as JsonStruct);
  }

  pairs(): MetadataIterator {
    return new MetadataIterator(this, [...(this.#scope.info.downstream?.dynamicMetadata?.entries() ?? [])]);
  }
}

export const METADATA: readonly LuaMethod[] = [
  ['get', 's', LuaMetadata.prototype.get],
  ['__pairs', '*', LuaMetadata.prototype.pairs],
];
export const METADATA_ITERATOR: readonly LuaMethod[] = [['next', '', MetadataIterator.prototype.next]];
export const DYNAMIC_METADATA: readonly LuaMethod[] = [
  ['get', 's', LuaDynamicMetadata.prototype.get],
  ['set', 'ssa', LuaDynamicMetadata.prototype.set],
  ['__pairs', '*', LuaDynamicMetadata.prototype.pairs],
];
export const CONNECTION_METADATA: readonly LuaMethod[] = [
  ['get', 's', LuaConnectionMetadata.prototype.get],
  ['__pairs', '*', LuaConnectionMetadata.prototype.pairs],
];
