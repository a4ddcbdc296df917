// The operators of arithmetic, comparison and membership.

import { areEqual, compare } from '../comparison.js';
import { CelDuration, CelMap, CelTimestamp, CelUint, type CelValue } from '../values.js';
import { type CelFunction, MAX_MADE, oneOf, type Result, twoOf } from './function-table.js';
import { durationOf, timestampOf } from './time-text.js';

const MAX_INT = 2n ** 63n - 1n;
const MAX_UINT = 2n ** 64n - 1n;

export const OPERATORS: readonly (readonly [string, CelFunction])[] = [
  ['_==_', twoOf('global', areEqual)],
  ['_!=_', twoOf('global', (a, b) => !areEqual(a, b))],
  ['_<_', ordered((order) => order < 0)],
  ['_<=_', ordered((order) => order <= 0)],
  ['_>_', ordered((order) => order > 0)],
  ['_>=_', ordered((order) => order >= 0)],
  ['@in', twoOf('global', contains)],
  ['_in_', twoOf('global', contains)],
  ['!_', oneOf('global', (a) => (typeof a === 'boolean' ? !a : undefined))],
  ['-_', oneOf('global', negative)],
  ['_+_', twoOf('global', sum)],
  ['_-_', twoOf('global', difference)],
  ['_*_', twoOf('global', product)],
  ['_/_', twoOf('global', quotient)],
  ['_%_', twoOf('global', remainder)],
];

/** With enable_string_concat. */
export const CONCATENATION = twoOf('global', (a, b) => {
  if (typeof a === 'string' && typeof b === 'string') return a.length + b.length > MAX_MADE ? undefined : a + b;
  if (!(a instanceof Uint8Array && b instanceof Uint8Array)) return sum(a, b);
  return a.length + b.length > MAX_MADE ? undefined : new Uint8Array(Buffer.concat([a, b]));
});

function ordered(holds: (order: number) => boolean): CelFunction {
  return twoOf('global', (a, b) => {
    const order = compare(a, b);
    return order === undefined ? undefined : holds(order);
  });
}

function contains(a: CelValue, b: CelValue): Result {
  if (Array.isArray(b)) return b.some((element: CelValue) => areEqual(element, a));
  return b instanceof CelMap ? b.has(a) : undefined;
}

function int(value: bigint): Result {
  return value > MAX_INT || value < -MAX_INT - 1n ? undefined : value;
}

function uint(value: bigint): Result {
  return value > MAX_UINT || value < 0n ? undefined : new CelUint(value);
}

function negative(a: CelValue): Result {
  return typeof a === 'bigint' ? int(-a) : typeof a === 'number' ? -a : undefined;
}

function sum(a: CelValue, b: CelValue): Result {
  if (typeof a === 'number' && typeof b === 'number') return a + b;
  if (typeof a === 'bigint' && typeof b === 'bigint') return int(a + b);
  if (a instanceof CelUint && b instanceof CelUint) return uint(a.value + b.value);
  if (a instanceof CelDuration && b instanceof CelDuration) return durationOf(a.nanos + b.nanos);
  if (a instanceof CelTimestamp && b instanceof CelDuration) return timestampOf(a.nanos + b.nanos);
  return a instanceof CelDuration && b instanceof CelTimestamp ? timestampOf(a.nanos + b.nanos) : undefined;
}

function difference(a: CelValue, b: CelValue): Result {
  if (typeof a === 'number' && typeof b === 'number') return a - b;
  if (typeof a === 'bigint' && typeof b === 'bigint') return int(a - b);
  if (a instanceof CelUint && b instanceof CelUint) return uint(a.value - b.value);
  if (a instanceof CelDuration && b instanceof CelDuration) return durationOf(a.nanos - b.nanos);
  if (a instanceof CelTimestamp && b instanceof CelTimestamp) return durationOf(a.nanos - b.nanos);
  return a instanceof CelTimestamp && b instanceof CelDuration ? timestampOf(a.nanos - b.nanos) : undefined;
}

function product(a: CelValue, b: CelValue): Result {
  if (typeof a === 'number' && typeof b === 'number') return a * b;
  if (typeof a === 'bigint' && typeof b === 'bigint') return int(a * b);
  return a instanceof CelUint && b instanceof CelUint ? uint(a.value * b.value) : undefined;
}

function quotient(a: CelValue, b: CelValue): Result {
  if (typeof a === 'number' && typeof b === 'number') return a / b;
  if (typeof a === 'bigint' && typeof b === 'bigint') return b === 0n ? undefined : int(a / b);
  if (!(a instanceof CelUint && b instanceof CelUint)) return undefined;
  return b.value === 0n ? undefined : uint(a.value / b.value);
}

function remainder(a: CelValue, b: CelValue): Result {
  if (typeof a === 'bigint' && typeof b === 'bigint') return b === 0n ? undefined : a % b;
  if (!(a instanceof CelUint && b instanceof CelUint)) return undefined;
  return b.value === 0n ? undefined : uint(a.value % b.value);
}
