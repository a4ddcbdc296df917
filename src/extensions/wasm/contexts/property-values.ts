// The values of properties in the form that modules get: texts as they are, numbers in eight bytes, truth values in one.

import { CelDuration, CelMap, CelTimestamp, CelUint, type CelValue } from '../../sdk.js';
import { writePairs } from '../vm/pairs.js';

/** Deeper structures are cut off. */
const MAX_DEPTH = 16;

/** Returns undefined for what has no such form: messages, and maps that cannot be listed. */
export function attributeBytes(value: CelValue, depth = 0): Buffer | undefined {
  if (depth > MAX_DEPTH) return undefined;
  switch (typeof value) {
    case 'string':
      return Buffer.from(value, 'latin1');
    case 'boolean':
      return Buffer.from([value ? 1 : 0]);
    case 'bigint':
      return integerBytes(value);
    case 'number': {
      const bytes = Buffer.alloc(8);
      bytes.writeDoubleLE(value);
      return bytes;
    }
    default:
      return value === null ? undefined : objectBytes(value, depth);
  }
}

function objectBytes(value: CelValue & object, depth: number): Buffer | undefined {
  if (value instanceof Uint8Array) return Buffer.from(value);
  if (value instanceof CelUint) return integerBytes(value.value);
  if (value instanceof CelTimestamp || value instanceof CelDuration) return integerBytes(value.nanos);
  if (Array.isArray(value))
    return pairBytes(
      (value as readonly CelValue[]).map((item) => [item, '']),
      depth,
    );
  const entries = value instanceof CelMap ? value.entries() : undefined;
  return entries && pairBytes(entries, depth);
}

function pairBytes(entries: Iterable<readonly [CelValue, CelValue]>, depth: number): Buffer | undefined {
  const pairs: [string, string][] = [];
  for (const [key, item] of entries) {
    const name = attributeBytes(key, depth + 1);
    const bytes = attributeBytes(item, depth + 1);
    if (name === undefined || bytes === undefined) return undefined;
    pairs.push([name.toString('latin1'), bytes.toString('latin1')]);
  }
  return writePairs(pairs);
}

function integerBytes(value: bigint): Buffer {
  const bytes = Buffer.alloc(8);
  bytes.writeBigInt64LE(BigInt.asIntN(64, value));
  return bytes;
}
