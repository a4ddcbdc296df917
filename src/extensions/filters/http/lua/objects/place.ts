// route() and virtualHost().

import type { LuaMethod } from '../../../../sdk.js';
import type { JsonStruct } from '../values.js';
import { LuaClass } from './classes.js';
import { LuaMetadata } from './metadata.js';

export class LuaPlace {
  readonly #metadata: JsonStruct | undefined;

  /** `metadata`: that of the filter. */
  constructor(metadata: JsonStruct | undefined) {
    this.#metadata = metadata;
  }

  get lua(): LuaClass {
    return LuaClass.Place;
  }

  metadata(): LuaMetadata {
    return new LuaMetadata(this.#metadata);
  }
}

export const PLACE: readonly LuaMethod[] = [['metadata', '', LuaPlace.prototype.metadata]];
