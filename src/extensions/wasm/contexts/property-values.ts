// The values of properties in the form that modules get: texts as they are, numbers in eight bytes, truth values in one.

import { writePairs } from '../vm/pairs.js';

/** Deeper structures are cut off. */
const MAX_DEPTH = 16;

/** Returns the part of a JSON value that a path names from its element `from` on; undefined: there is none. */
export function valueIn(value: unknown, path: readonly string[], from: number): unknown {
  for (let at = from; at < path.length; at++) {
    if (typeof value !== 'object' || value === null) return undefined;
    const part = path[at]!;
    if (Array.isArray(value)) value = /^\d{1,9}$/.test(part) ? value[Number(part)] : undefined;
    else value = Object.hasOwn(value, part) ? (value as Record<string, unknown>)[part] : undefined;
  }
  return value;
}

/** Returns undefined for what has no such form. Integers are bigints, other numbers have the form of a double. */
export function propertyBytes(value: unknown, depth = 0): Buffer | undefined {
  if (depth > MAX_DEPTH) return undefined;
  switch (typeof value) {
    case 'string':
      return Buffer.from(value);
    case 'boolean':
      return Buffer.from([value ? 1 : 0]);
    case 'bigint': {
      const bytes = Buffer.alloc(8);
      bytes.writeBigInt64LE(BigInt.asIntN(64, value));
      return bytes;
    }
    case 'number': {
      const bytes = Buffer.alloc(8);
      bytes.writeDoubleLE(value);
      return bytes;
    }
    case 'object':
      return value === null ? undefined : structureBytes(value, depth);
    default:
      return undefined;
  }
}

function structureBytes(value: object, depth: number): Buffer | undefined {
  if (value instanceof Uint8Array) return Buffer.from(value);
  const entries: [unknown, unknown][] = Array.isArray(value) ? value.map((item) => [item, '']) : Object.entries(value);
  const pairs: [string, string][] = [];
  for (const [key, item] of entries) {
    const name = propertyBytes(key, depth + 1);
    const bytes = propertyBytes(item, depth + 1);
    if (name === undefined || bytes === undefined) return undefined;
    pairs.push([name.toString('latin1'), bytes.toString('latin1')]);
  }
  return writePairs(pairs);
}
