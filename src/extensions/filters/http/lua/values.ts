// Values of configurations and metadata as Lua has them, and back. Text of configurations is Unicode, strings of Lua are bytes.

import { textOfHead } from '../../../script/text.js';
import { byteText, LuaError, LuaTable } from '../../../sdk.js';

/** JSON, as in google.protobuf.Struct. */
export type Json = string | number | boolean | null | readonly Json[] | { readonly [key: string]: Json };
export type JsonStruct = { readonly [key: string]: Json };

/** Returns a value for Lua: lists and structures become tables. */
export function toLua(value: Json | undefined): unknown {
  if (typeof value === 'string') return byteText(value);
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) return new LuaTable(value.flatMap((item: Json, index) => [index + 1, toLua(item)]));
  return structToLua(value as JsonStruct);
}

export function structToLua(value: JsonStruct): LuaTable {
  const entries: unknown[] = [];
  // Lua has no null in tables.
  for (const key of Object.keys(value)) if (value[key] !== null) entries.push(byteText(key), toLua(value[key]));
  return new LuaTable(entries);
}

/** Returns a value of a script as JSON. Throws a LuaError for one that metadata cannot hold. */
export function fromLua(value: unknown): Json {
  if (value === undefined || value === null) return null;
  if (typeof value === 'string') return textOfHead(value);
  if (typeof value === 'number' || typeof value === 'boolean') return value;
  if (Array.isArray(value)) return tableToJson(value);
  throw new LuaError(`unexpected type '${(value as { type?: string }).type ?? 'userdata'}' in dynamicMetadata`);
}

/** `entries`: keys and values in turn. Keys from 1 on make a list. */
function tableToJson(entries: readonly unknown[]): Json {
  const length = entries.length / 2;
  if (length > 0 && isList(entries, length)) {
    const list: Json[] = new Array(length);
    for (let i = 0; i < entries.length; i += 2) list[(entries[i] as number) - 1] = fromLua(entries[i + 1]);
    return list;
  }
  const struct: Record<string, Json> = { __proto__: null } as unknown as Record<string, Json>;
  for (let i = 0; i < entries.length; i += 2) {
    const key = entries[i];
    if (typeof key !== 'string') {
      const type = typeof key === 'object' ? ((key as { type?: string }).type ?? 'table') : typeof key;
      throw new LuaError(`unexpected type ${type} in table key (only string keys are supported)`);
    }
    struct[textOfHead(key)] = fromLua(entries[i + 1]);
  }
  return struct;
}

function isList(entries: readonly unknown[], length: number): boolean {
  for (let i = 0; i < entries.length; i += 2) {
    const key = entries[i];
    if (!(typeof key === 'number' && Number.isInteger(key) && key >= 1 && key <= length)) return false;
  }
  return true;
}
