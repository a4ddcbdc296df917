// google.protobuf.FieldMask on messages in canonical JSON form: validates and applies masks.

import type { Message } from './decode.js';
import { messageNameOf } from './message-name.js';
import type { FieldType, Schema } from './schema.js';

/** Selected fields: undefined selects the whole field, a mask selects parts of it. */
export type FieldMask = ReadonlyMap<string, FieldMask | undefined>;

type Paths = Map<string, Paths | undefined>;

/** Protobuf's parsers refuse messages that are nested deeper. */
const MAX_DEPTH = 100;

/** Parses `a,b.c`. A path that is contained in another one is ignored. */
export function parseFieldMask(text: string): FieldMask {
  const mask: Paths = new Map();
  for (const path of text.split(',')) if (path !== '') add(mask, path);
  return mask;
}

/** Returns whether every path of the mask is a field of the message. Paths traverse single messages only, not lists and maps. */
export function maskFits(schema: Schema, name: string, mask: FieldMask): boolean {
  const type = schema.message(name);
  return type !== undefined && [...mask].every(([field, inner]) => fieldFits(schema, type.fields.get(field), inner));
}

/** Like maskFits(), for a resource: paths may also traverse the message in an Any. */
export function maskFitsResource(schema: Schema, name: string, mask: FieldMask, resource: Message): boolean {
  const type = schema.message(name);
  if (type === undefined) return false;
  return [...mask].every(([name, inner]) => {
    const field = type.fields.get(name);
    if (inner === undefined || !isAny(field)) return fieldFits(schema, field, inner);
    const held = resource[name] as Message | undefined;
    return held === undefined || maskFits(schema, messageNameOf(String(held['@type'])), inner);
  });
}

/** Applies a mask that fits. The '@type' of an Any is kept; undefined members are dropped. */
export function trim(message: Message, mask: FieldMask): Message {
  const trimmed: Message = {};
  for (const [name, value] of Object.entries(message)) {
    if (value === undefined) continue;
    const inner = mask.get(name);
    if (name === '@type') trimmed[name] = value;
    else if (mask.has(name)) trimmed[name] = inner === undefined ? value : trim(value as Message, inner);
  }
  return trimmed;
}

function add(mask: Paths, path: string): void {
  const names = path.split('.', MAX_DEPTH + 1);
  // The whole path is not the name of a field.
  if (names.length > MAX_DEPTH) return void mask.set(path, undefined);
  const last = names.pop()!;
  let paths = mask;
  for (const name of names) {
    if (!paths.has(name)) paths.set(name, new Map());
    const inner = paths.get(name);
    if (inner === undefined) return;
    paths = inner;
  }
  paths.set(last, undefined);
}

function fieldFits(schema: Schema, field: FieldType | undefined, inner: FieldMask | undefined): boolean {
  if (field === undefined) return false;
  if (inner === undefined) return true;
  return field.shape === 'single' && field.value.kind === 'message' && maskFits(schema, field.value.name, inner);
}

function isAny(field: FieldType | undefined): boolean {
  return field?.shape === 'single' && field.value.kind === 'special' && field.value.special === 'any';
}
