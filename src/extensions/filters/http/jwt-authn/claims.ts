// Values of claims in fields of the request.

import type { Json, Struct } from '../../../sdk.js';

const MAX_UINT64 = 2 ** 64;

/** Returns the text of a claim, one character per byte; '': there is none. Objects and lists are Base64 of their JSON. */
export function claimText(value: Json | undefined): string {
  switch (typeof value) {
    case 'string':
      return Buffer.from(value).toString('latin1');
    case 'number':
      return numberText(value);
    case 'boolean':
      return String(value);
    case 'object':
      return value === null ? '' : Buffer.from(jsonText(value)).toString('base64');
    default:
      return '';
  }
}

/** As in Envoy: positive integers as they are, others with six digits. */
function numberText(value: number): string {
  const isInteger = Number.isInteger(value);
  if (isInteger && value >= 0 && value < MAX_UINT64) return BigInt(value).toString();
  return isInteger ? `${BigInt(value)}.000000` : value.toFixed(6);
}

/** JSON as protobuf writes it: keys in order, and no angle brackets. */
function jsonText(value: Json): string {
  return JSON.stringify(value, (_key, inner: Json) => sorted(inner)).replace(/[<>]/g, (found) =>
    found === '<' ? '\\u003c' : '\\u003e',
  );
}

function sorted(value: Json): Json {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value;
  return Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)));
}

/** Returns the payload with the space-delimited texts of these claims as lists. */
export function normalized(payload: Struct, claims: readonly string[]): Struct {
  const lists = claims.flatMap((name) => {
    const value = Object.hasOwn(payload, name) ? payload[name] : undefined;
    return typeof value === 'string' ? [[name, value.split(' ').filter((part) => part !== '')] as const] : [];
  });
  return lists.length === 0 ? payload : { ...payload, ...Object.fromEntries(lists) };
}
