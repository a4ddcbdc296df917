// Conversions between types.

import { isUtf8 } from 'node:buffer';
import { decimalOf } from '../../common/text/decimal.js';
import { CelDuration, CelTimestamp, CelUint, type CelValue, stringOfBytes, textOf, typeOf } from '../values.js';
import { type CelFunction, oneOf, type Result } from './function-table.js';
import { exactNumber } from './number-text.js';
import { durationJson, parseDuration, parseTimestamp, timestampJson, timestampOf } from './time-text.js';

const MAX_INT = 2n ** 63n - 1n;
const MAX_UINT = 2n ** 64n - 1n;

export const CONVERSIONS: readonly (readonly [string, CelFunction])[] = [
  ['int', oneOf('global', (a) => integer(a, -MAX_INT - 1n, MAX_INT))],
  ['uint', oneOf('global', toUint)],
  ['double', oneOf('global', toDouble)],
  ['bool', oneOf('global', toBool)],
  ['bytes', oneOf('global', toBytes)],
  ['dyn', oneOf('global', (a) => a)],
  ['type', oneOf('global', typeOf)],
  ['duration', oneOf('global', toDuration)],
  ['timestamp', oneOf('global', toTimestamp)],
];

/** With enable_string_conversion. */
export const TO_STRING = oneOf('global', (a) => {
  if (typeof a === 'string') return a;
  if (typeof a === 'bigint' || typeof a === 'boolean') return String(a);
  if (typeof a === 'number') return exactNumber(a);
  if (a instanceof CelUint) return String(a.value);
  if (a instanceof CelDuration) return durationJson(a);
  if (a instanceof CelTimestamp) return timestampJson(a);
  return a instanceof Uint8Array && isUtf8(a) ? stringOfBytes(a) : undefined;
});

function integer(a: CelValue, least: bigint, most: bigint): bigint | undefined {
  const value = integerOf(a);
  return value === undefined || value < least || value > most ? undefined : value;
}

function integerOf(a: CelValue): bigint | undefined {
  if (typeof a === 'bigint') return a;
  if (typeof a === 'number') return Number.isFinite(a) ? BigInt(Math.trunc(a)) : undefined;
  if (typeof a === 'boolean') return a ? 1n : 0n;
  if (a instanceof CelUint) return a.value;
  if (a instanceof CelTimestamp)
    return (a.nanos - (((a.nanos % 1_000_000_000n) + 1_000_000_000n) % 1_000_000_000n)) / 1_000_000_000n;
  return typeof a === 'string' && /^\s*[+-]?\d{1,20}\s*$/.test(a) ? BigInt(a.replace('+', '').trim()) : undefined;
}

function toUint(a: CelValue): Result {
  if (typeof a === 'boolean' || (typeof a === 'number' && a < 0) || a instanceof CelTimestamp) return undefined;
  const value = integer(a, 0n, MAX_UINT);
  return value === undefined ? undefined : new CelUint(value);
}

function toDouble(a: CelValue): Result {
  if (typeof a === 'number') return a;
  if (typeof a === 'bigint') return Number(a);
  if (a instanceof CelUint) return Number(a.value);
  if (typeof a !== 'string') return undefined;
  const number = decimalOf(a.trim());
  if (!Number.isNaN(number)) return number;
  const special = /^\s*([+-]?)(?:inf|infinity)\s*$/i.exec(a);
  if (special !== null) return special[1] === '-' ? -Infinity : Infinity;
  return /^\s*[+-]?nan\s*$/i.test(a) ? Number.NaN : undefined;
}

const TRUE = new Set(['1', 't', 'true', 'TRUE', 'True']);
const FALSE = new Set(['0', 'f', 'false', 'FALSE', 'False']);

function toBool(a: CelValue): Result {
  if (typeof a === 'boolean') return a;
  if (typeof a !== 'string') return undefined;
  return TRUE.has(a) ? true : FALSE.has(a) ? false : undefined;
}

function toBytes(a: CelValue): Result {
  if (typeof a === 'string') return new Uint8Array(Buffer.from(a, 'latin1'));
  return a instanceof Uint8Array ? a : undefined;
}

function toDuration(a: CelValue): Result {
  return typeof a === 'string' ? parseDuration(textOf(a)) : a instanceof CelDuration ? a : undefined;
}

function toTimestamp(a: CelValue): Result {
  if (typeof a === 'string') return parseTimestamp(textOf(a));
  if (typeof a === 'bigint') return timestampOf(a * 1_000_000_000n);
  return a instanceof CelTimestamp ? a : undefined;
}
