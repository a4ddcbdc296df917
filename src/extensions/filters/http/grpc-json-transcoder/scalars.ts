// Converts JSON scalars to protobuf's. Each function returns undefined for a value that the type does not have.

import type { EnumDescriptor } from '../../../protobuf/types.js';
import { JsonDouble, type JsonValue } from './json-value.js';

const INTEGER = /^[+-]?[0-9]{1,40}$/;
/** Each text has one reading: a pattern that tries several would take minutes for a megabyte of digits. */
const REAL = /^[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]{1,9})?$/;
const BASE64 = /^[A-Za-z0-9+/]*={0,2}$/;
const BASE64_URL = /^[A-Za-z0-9_-]*={0,2}$/;

/** Bounds of an integer type. */
export interface IntegerRange {
  readonly min: bigint;
  readonly max: bigint;
}

export const INT32: IntegerRange = { min: -(2n ** 31n), max: 2n ** 31n - 1n };
export const UINT32: IntegerRange = { min: 0n, max: 2n ** 32n - 1n };
export const INT64: IntegerRange = { min: -(2n ** 63n), max: 2n ** 63n - 1n };
export const UINT64: IntegerRange = { min: 0n, max: 2n ** 64n - 1n };

/** Returns an integer within 32 bits as a number. */
export function toSmallInteger(value: JsonValue, range: IntegerRange): number | undefined {
  if (typeof value === 'number') return value >= Number(range.min) && value <= Number(range.max) ? value : undefined;
  const integer = toInteger(value, range);
  return integer === undefined ? undefined : Number(integer);
}

export function toInteger(value: JsonValue, { min, max }: IntegerRange): bigint | undefined {
  const integer = integerIn(value, min);
  return integer !== undefined && integer >= min && integer <= max ? integer : undefined;
}

function integerIn(value: JsonValue, min: bigint): bigint | undefined {
  if (typeof value === 'number') return BigInt(value);
  if (typeof value === 'bigint') return value;
  if (value instanceof JsonDouble) return Number.isInteger(value.value) ? BigInt(value.value) : undefined;
  if (typeof value !== 'string') return undefined;
  const text = trimmed(value);
  if (!INTEGER.test(text) || (min === 0n && text.startsWith('-'))) return undefined;
  return BigInt(text.replace(/^\+/, ''));
}

export function toReal(value: JsonValue): number | undefined {
  if (typeof value === 'number') return value;
  if (typeof value === 'bigint') return Number(value);
  if (value instanceof JsonDouble) return value.value;
  if (typeof value !== 'string') return undefined;
  if (value === 'NaN') return Number.NaN;
  if (value === 'Infinity') return Number.POSITIVE_INFINITY;
  if (value === '-Infinity') return Number.NEGATIVE_INFINITY;
  const text = trimmed(value);
  const number = REAL.test(text) ? Number(text) : Number.NaN;
  return Number.isFinite(number) ? number : undefined;
}

/** Removes white space around a number in a string, except spaces. */
function trimmed(text: string): string {
  let start = 0;
  let end = text.length;
  while (start < end && isTrimmed(text.charCodeAt(start))) start++;
  while (end > start && isTrimmed(text.charCodeAt(end - 1))) end--;
  return text.slice(start, end);
}

function isTrimmed(code: number): boolean {
  return code >= 9 && code <= 13;
}

export function toFloat(value: JsonValue): number | undefined {
  const number = toReal(value);
  if (number === undefined || !Number.isFinite(number)) return number;
  return Number.isFinite(Math.fround(number)) ? number : undefined;
}

export function toBool(value: JsonValue): boolean | undefined {
  if (typeof value === 'boolean') return value;
  if (typeof value !== 'string') return undefined;
  switch (value.toLowerCase()) {
    case 'true':
    case 't':
    case 'yes':
    case 'y':
    case '1':
      return true;
    case 'false':
    case 'f':
    case 'no':
    case 'n':
    case '0':
      return false;
    default:
      return undefined;
  }
}

/** Decodes base64 in either alphabet, with or without padding. */
export function toBytes(value: JsonValue): Buffer | undefined {
  if (typeof value !== 'string' || (!BASE64.test(value) && !BASE64_URL.test(value))) return undefined;
  const digits = value.replace(/=+$/, '');
  const isWhole = digits.length % 4 !== 1;
  const isPadded = digits.length !== value.length;
  return isWhole && (!isPadded || value.length % 4 === 0) ? Buffer.from(digits, 'base64') : undefined;
}

/** `ignoresCase`: names may be in lower case, and have hyphens. */
export function toEnum(value: JsonValue, type: EnumDescriptor, ignoresCase: boolean): number | undefined {
  if (typeof value !== 'string') return toSmallInteger(value, INT32);
  const named = type.byName.get(value);
  if (named !== undefined) return named;
  const number = toSmallInteger(value, INT32);
  if (number !== undefined && type.byNumber.has(number)) return number;
  return ignoresCase ? type.byName.get(value.toUpperCase().replaceAll('-', '_')) : undefined;
}
