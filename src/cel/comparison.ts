// Equality and order of values. Numbers of different types are compared by their value.

import { CelDuration, CelMap, CelMessage, CelTimestamp, CelType, CelUint, type CelValue } from './values.js';

/** Values of messages of other peers are not deeper; deeper ones are unequal. */
const MAX_DEPTH = 200;

export function areEqual(a: CelValue, b: CelValue, depth = 0): boolean {
  if (a === b) return true;
  if (typeof a === 'string' || typeof a === 'boolean' || a === null || b === null) return false;
  if (isNumber(a)) return isNumber(b) && compareNumbers(a, b) === 0;
  if (typeof b !== 'object' || depth > MAX_DEPTH) return false;
  if (a instanceof Uint8Array) return b instanceof Uint8Array && Buffer.compare(a, b) === 0;
  if (Array.isArray(a)) return Array.isArray(b) && areListsEqual(a, b, depth);
  if (a instanceof CelMap) return b instanceof CelMap && areMapsEqual(a, b, depth);
  if (a instanceof CelMessage) return b instanceof CelMessage && JSON.stringify(a.json) === JSON.stringify(b.json);
  if (a instanceof CelDuration) return b instanceof CelDuration && a.nanos === b.nanos;
  if (a instanceof CelTimestamp) return b instanceof CelTimestamp && a.nanos === b.nanos;
  return a instanceof CelType && b instanceof CelType && a.name === b.name;
}

function areListsEqual(a: readonly CelValue[], b: readonly CelValue[], depth: number): boolean {
  return a.length === b.length && a.every((value, index) => areEqual(value, b[index]!, depth + 1));
}

function areMapsEqual(a: CelMap, b: CelMap, depth: number): boolean {
  const entries = a.entries();
  if (entries === undefined || a.size !== b.size) return false;
  for (const [key, value] of entries) {
    const other = b.get(key);
    if (other === undefined || !areEqual(value, other, depth + 1)) return false;
  }
  return true;
}

/** Returns a negative number, 0 or a positive number; NaN if the values have no order (and for NaN); undefined for other types. */
export function compare(a: CelValue, b: CelValue): number | undefined {
  if (typeof a === 'string') return typeof b === 'string' ? (a < b ? -1 : a > b ? 1 : 0) : undefined;
  if (isNumber(a)) return isNumber(b) ? compareNumbers(a, b) : undefined;
  if (typeof a === 'boolean') return typeof b === 'boolean' ? Number(a) - Number(b) : undefined;
  if (a instanceof Uint8Array) return b instanceof Uint8Array ? Buffer.compare(a, b) : undefined;
  const isTime =
    a instanceof CelTimestamp ? b instanceof CelTimestamp : a instanceof CelDuration && b instanceof CelDuration;
  return isTime ? order((a as CelTimestamp).nanos, (b as CelTimestamp).nanos) : undefined;
}

type CelNumber = bigint | number | CelUint;

function isNumber(value: CelValue): value is CelNumber {
  return typeof value === 'bigint' || typeof value === 'number' || value instanceof CelUint;
}

function compareNumbers(a: CelNumber, b: CelNumber): number {
  return order(a instanceof CelUint ? a.value : a, b instanceof CelUint ? b.value : b);
}

/** JavaScript compares a bigint with a number exactly. */
function order(a: bigint | number, b: bigint | number): number {
  return a < b ? -1 : a > b ? 1 : a <= b ? 0 : Number.NaN;
}
