// Values of expressions as Envoy's logs and messages show them.

import type { Json } from '../config/generated/api.js';
import { shortNumber } from './functions/number-text.js';
import { durationJson, durationText, timestampJson, timestampText } from './functions/time-text.js';
import {
  CelDuration,
  CelMap,
  CelMessage,
  CelTimestamp,
  CelType,
  CelUint,
  type CelValue,
  stringOfBytes,
  textOf,
} from './values.js';

/** Returns a value as %CEL()% writes it, with one character per byte. */
export function celText(value: CelValue): string {
  if (typeof value === 'string') return value;
  if (typeof value === 'number') return shortNumber(value, 6);
  if (value === null) return 'NULL';
  if (typeof value !== 'object') return String(value);
  if (value instanceof CelUint) return String(value.value);
  if (value instanceof Uint8Array) return stringOfBytes(value);
  if (value instanceof CelDuration) return durationText(value);
  if (value instanceof CelTimestamp) return timestampText(value);
  if (value instanceof CelMessage) return value.text;
  return value instanceof CelMap ? 'CelMap value' : value instanceof CelType ? 'CelType value' : 'CelList value';
}

/** Nested lists and maps; deeper ones are left out. */
const MAX_DEPTH = 100;

/** Returns a value as a google.protobuf.Value: as %TYPED_CEL()% and external processors get it. undefined: it has none. */
export function celJson(value: CelValue, depth = 0): Json | undefined {
  if (typeof value === 'string') return textOf(value);
  if (typeof value === 'bigint') return Number(value);
  if (typeof value !== 'object' || value === null) return value;
  if (value instanceof CelUint) return Number(value.value);
  if (value instanceof Uint8Array) return Buffer.from(value).toString('base64');
  if (value instanceof CelDuration) return durationJson(value);
  if (value instanceof CelTimestamp) return timestampJson(value);
  if (value instanceof CelMessage) return value.json;
  if (value instanceof CelType || depth > MAX_DEPTH) return undefined;
  return value instanceof CelMap ? mapJson(value, depth) : listJson(value, depth);
}

function listJson(list: readonly CelValue[], depth: number): Json {
  return list.map((each) => celJson(each, depth + 1) ?? null);
}

function mapJson(map: CelMap, depth: number): Json | undefined {
  const entries = map.entries();
  if (entries === undefined) return undefined;
  const json: Record<string, Json> = { __proto__: null } as unknown as Record<string, Json>;
  for (const [key, value] of entries) json[textOf(celText(key))] = celJson(value, depth + 1) ?? null;
  return json;
}
