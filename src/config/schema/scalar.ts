// Converts scalars from YAML and JSON to canonical proto JSON form.

import type { EnumType, ScalarKind } from './schema.js';

/** A scalar in canonical form, or the problem with it. */
export type ScalarResult = { readonly value: unknown; readonly problem?: undefined } | { readonly problem: string };

/** Reads a scalar. Numbers may be quoted, 64-bit integers become decimal strings, yes/no/on/off are booleans. */
export function readScalar(kind: ScalarKind, raw: unknown): ScalarResult {
  switch (kind) {
    case 'string':
      return readString(raw);
    case 'bytes':
      return readBytes(raw);
    case 'bool':
      return readBool(raw);
    case 'double':
    case 'float':
      return readFloat(raw);
    default:
      return readInteger(kind, raw);
  }
}

/** Returns the default of an unset field without presence. */
export function defaultOf(kind: ScalarKind): unknown {
  if (kind === 'string' || kind === 'bytes') return '';
  if (kind === 'bool') return false;
  return kind === 'int64' || kind === 'uint64' ? '0' : 0;
}

/** Reads an enum value by name in any case, or by number, which may be quoted; returns the name. */
export function readEnum(type: EnumType, raw: unknown): ScalarResult {
  const number = typeof raw === 'string' && /^\s*[+-]?\d{1,10}\s*$/.test(raw) ? Number(raw) : raw;
  if (typeof number === 'number') {
    const name = type.names.get(number);
    if (name !== undefined) return { value: name };
    return { problem: `${number} is not a value of ${type.name}; it is one of ${choices(type)}` };
  }
  if (typeof raw !== 'string') return { problem: `expected one of ${choices(type)}, found ${describe(raw)}` };
  if (type.values.has(raw)) return { value: raw };
  const upper = raw.toUpperCase();
  for (const name of type.values.keys()) if (name.toUpperCase() === upper) return { value: name };
  return { problem: '' };
}

/** Returns the values of an enum, for messages. */
export function choices(type: EnumType): string {
  const names = [...type.values.keys()];
  return names.length > 12 ? `${names.slice(0, 12).join(', ')}, …` : names.join(', ');
}

/** Reads a duration in message form, `{ seconds: 1, nanos: 5 }`; undefined if the parts are not a duration. */
function durationText(parts: { readonly seconds?: unknown; readonly nanos?: unknown }): string | undefined {
  const [seconds, nanos] = [parts.seconds ?? 0, parts.nanos ?? 0].map((part) => Number(wholeNumber(part) ?? -1n));
  if (seconds! < 0 || seconds! > MAX_DURATION_S || nanos! < 0 || nanos! >= 1e9) return undefined;
  return `${seconds}.${String(nanos).padStart(9, '0')}s`;
}

function isDurationMessage(raw: unknown): raw is { readonly seconds?: unknown; readonly nanos?: unknown } {
  if (typeof raw !== 'object' || raw === null || Array.isArray(raw)) return false;
  return Object.keys(raw).every((key) => key === 'seconds' || key === 'nanos');
}

/** Reads a duration such as `0.25s` or `{ nanos: 250000000 }`; returns it as text with 0, 3, 6 or 9 decimals. */
export function readDuration(raw: unknown): ScalarResult {
  if (typeof raw === 'number') {
    const hint = raw >= 0 && raw <= MAX_DURATION_S ? `; write it as '${raw}s'` : '';
    return { problem: `expected a duration, found ${describe(raw)}${hint}` };
  }
  if (isDurationMessage(raw)) {
    const text = durationText(raw);
    if (text !== undefined) return readDuration(text);
    return { problem: `a duration has 0 to ${MAX_DURATION_S} seconds and 0 to 999999999 nanos` };
  }
  if (typeof raw !== 'string') return { problem: `expected a duration such as '1.5s', found ${describe(raw)}` };
  const match = /^(-?)(\d{1,12})(?:\.(\d{0,9}))?s$/.exec(raw);
  if (!match) {
    const unit = /^(\d+)(ms|m|h)$/.exec(raw);
    const factor = unit ? { ms: 0.001, m: 60, h: 3600 }[unit[2] as 'ms' | 'm' | 'h'] : 0;
    const hint = unit ? `; write it as '${Number((Number(unit[1]) * factor).toFixed(9))}s'` : '';
    return { problem: `expected a duration in seconds such as '1.5s', found ${describe(raw)}${hint}` };
  }
  const [, sign, seconds, fraction = ''] = match;
  if (Number(seconds) > MAX_DURATION_S) return { problem: `a duration is at most ${MAX_DURATION_S}s, found '${raw}'` };
  const digits = fraction.replace(/0+$/, '');
  // No implemented field allows negative durations.
  if (sign === '-' && (Number(seconds) > 0 || digits !== '')) {
    return { problem: `a duration cannot be negative, found '${raw}'` };
  }
  const padded = digits.padEnd(Math.ceil(digits.length / 3) * 3, '0');
  return { value: `${Number(seconds)}${padded === '' ? '' : `.${padded}`}s` };
}

/** Reads an RFC 3339 time. */
export function readTimestamp(raw: unknown): ScalarResult {
  if (typeof raw === 'string' && TIMESTAMP.test(raw) && !Number.isNaN(Date.parse(raw))) return { value: raw };
  return { problem: `expected a time such as '2024-01-31T12:00:00Z', found ${describe(raw)}` };
}

/** Returns a description of a value for errors. */
export function describe(raw: unknown): string {
  if (raw === null || raw === undefined) return 'nothing';
  if (Array.isArray(raw)) return 'a list';
  if (typeof raw === 'object') return 'a map';
  if (typeof raw === 'string') return `'${raw.length > 60 ? `${raw.slice(0, 60)}…` : raw}'`;
  return typeof raw === 'boolean' ? String(raw) : `the number ${String(raw)}`;
}

const MAX_DURATION_S = 315_576_000_000;
const TIMESTAMP = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,9})?(Z|[+-]\d\d:\d\d)$/;
const TRUE = /^(y|yes|true|on)$/i;
const FALSE = /^(n|no|false|off)$/i;

const RANGES: { readonly [kind: string]: readonly [bigint, bigint] } = {
  int32: [-(2n ** 31n), 2n ** 31n - 1n],
  uint32: [0n, 2n ** 32n - 1n],
  int64: [-(2n ** 63n), 2n ** 63n - 1n],
  uint64: [0n, 2n ** 64n - 1n],
};

function readString(raw: unknown): ScalarResult {
  if (typeof raw === 'string') return { value: raw };
  const quotes = typeof raw === 'object' ? '' : '; put it in quotes';
  return { problem: `expected text, found ${describe(raw)}${quotes}` };
}

function readBytes(raw: unknown): ScalarResult {
  if (typeof raw === 'string' && isBase64(raw)) {
    return { value: raw.replaceAll('-', '+').replaceAll('_', '/') };
  }
  return { problem: `expected bytes in base64, found ${describe(raw)}` };
}

/** Accepts missing padding. */
function isBase64(text: string): boolean {
  if (!/^[A-Za-z0-9+/_-]*={0,2}$/.test(text)) return false;
  return text.endsWith('=') ? text.length % 4 === 0 : text.length % 4 !== 1;
}

function readBool(raw: unknown): ScalarResult {
  if (typeof raw === 'boolean') return { value: raw };
  if (typeof raw === 'string' && TRUE.test(raw)) return { value: true };
  if (typeof raw === 'string' && FALSE.test(raw)) return { value: false };
  return { problem: `expected true or false, found ${describe(raw)}` };
}

function readFloat(raw: unknown): ScalarResult {
  if (typeof raw === 'string' && (raw === 'NaN' || raw === 'Infinity' || raw === '-Infinity')) return { value: raw };
  const value =
    typeof raw === 'string' && raw.trim() !== '' ? Number(raw) : typeof raw === 'bigint' ? Number(raw) : raw;
  if (typeof value === 'number' && Number.isFinite(value)) return { value };
  return { problem: `expected a number, found ${describe(raw)}` };
}

function readInteger(kind: ScalarKind, raw: unknown): ScalarResult {
  const whole = wholeNumber(raw);
  if (whole === undefined) return { problem: `expected a whole number, found ${describe(raw)}` };
  const [low, high] = RANGES[kind]!;
  if (whole < low || whole > high) return { problem: `${whole} is out of range: ${low} to ${high}` };
  return { value: kind === 'int64' || kind === 'uint64' ? whole.toString() : Number(whole) };
}

function wholeNumber(raw: unknown): bigint | undefined {
  if (typeof raw === 'bigint') return raw;
  if (typeof raw === 'number') return Number.isSafeInteger(raw) ? BigInt(raw) : undefined;
  if (typeof raw !== 'string' || raw.length > 40) return undefined;
  if (/^[+-]?\d+$/.test(raw)) return BigInt(raw.replace(/^\+/, ''));
  if (/^\+?0x[\da-f]+$/i.test(raw)) return BigInt(raw.replace(/^\+/, ''));
  const value = Number(raw);
  return /^[+-]?\d+(\.\d*)?(e[+-]?\d+)?$/i.test(raw) && Number.isSafeInteger(value) ? BigInt(value) : undefined;
}
