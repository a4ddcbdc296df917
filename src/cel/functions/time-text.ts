// Durations and timestamps as texts: of expressions ("1h30m", RFC 3339), of protobuf's JSON form, and of Envoy's logs.

import { CelDuration, CelTimestamp } from '../values.js';

const SECOND = 1_000_000_000n;
const UNITS: ReadonlyMap<string, bigint> = new Map([
  ['ns', 1n],
  ['us', 1000n],
  ['µs', 1000n],
  ['ms', 1_000_000n],
  ['s', SECOND],
  ['m', 60n * SECOND],
  ['h', 3600n * SECOND],
]);
/** The limit of google.protobuf.Duration. */
const MAX_DURATION = 315_576_000_000n * SECOND;
const MIN_TIMESTAMP = -62_135_596_800n * SECOND;
const MAX_TIMESTAMP = 253_402_300_800n * SECOND - 1n;
/** Characters of a text that is parsed. */
const MAX_TEXT = 128;

/** Returns undefined for a duration that protobuf cannot represent. */
export function durationOf(nanos: bigint): CelDuration | undefined {
  return nanos > MAX_DURATION || nanos < -MAX_DURATION ? undefined : new CelDuration(nanos);
}

/** Returns undefined for a time before the year 1 or after 9999. */
export function timestampOf(nanos: bigint): CelTimestamp | undefined {
  return nanos > MAX_TIMESTAMP || nanos < MIN_TIMESTAMP ? undefined : new CelTimestamp(nanos);
}

/** Parses a duration such as 1.5h or -2m30s. Returns undefined for an invalid one. */
export function parseDuration(text: string): CelDuration | undefined {
  if (text.length > MAX_TEXT || !/^[+-]?(?:0|(?:(?:\d+\.?\d*|\.\d+)(?:ns|us|µs|ms|s|m|h))+)$/.test(text))
    return undefined;
  let nanos = 0n;
  for (const [, whole = '', fraction = '', unit] of text.matchAll(/(\d*)(?:\.(\d*))?(ns|us|µs|ms|s|m|h)/g)) {
    const factor = UNITS.get(unit!)!;
    nanos += BigInt(whole || '0') * factor + (BigInt(fraction || '0') * factor) / 10n ** BigInt(fraction.length);
  }
  return durationOf(text.startsWith('-') ? -nanos : nanos);
}

const TIMESTAMP = /^(\d{4}-\d\d-\d\d)T((?:[01]\d|2[0-3]):\d\d:\d\d)(?:\.(\d{1,9})\d*)?(Z|[+-]\d\d:\d\d)$/i;

/** Parses a time as in RFC 3339. Returns undefined for an invalid one. */
export function parseTimestamp(text: string): CelTimestamp | undefined {
  const match = text.length > MAX_TEXT ? null : TIMESTAMP.exec(text);
  if (match === null) return undefined;
  const [, date, time, fraction = '', zone] = match;
  const ms = Date.parse(`${date}T${time}${zone!.toUpperCase()}`);
  if (Number.isNaN(ms) || !isDay(date!)) return undefined;
  return timestampOf(BigInt(ms) * 1_000_000n + BigInt(fraction.padEnd(9, '0')));
}

/** JavaScript takes the 30th of February for the first of March. */
function isDay(date: string): boolean {
  return new Date(`${date}T00:00:00Z`).toISOString().startsWith(date);
}

/** Returns a duration as in protobuf's JSON form: with 0, 3, 6 or 9 digits after the point. */
export function durationJson({ nanos }: CelDuration): string {
  const size = nanos < 0n ? -nanos : nanos;
  return `${nanos < 0n ? '-' : ''}${size / SECOND}${groupedFraction(size % SECOND)}s`;
}

/** Returns a time as in protobuf's JSON form. */
export function timestampJson({ nanos }: CelTimestamp): string {
  return `${secondsText(nanos)}${groupedFraction(fractionOf(nanos))}Z`;
}

/** Returns a time as Envoy's logs show it. */
export function timestampText({ nanos }: CelTimestamp): string {
  return `${secondsText(nanos)}${shortFraction(fractionOf(nanos), 9)}+00:00`;
}

/** Returns a duration as Envoy's logs show it: 1h2m3.5s, 3.7ms, 15ns. */
export function durationText({ nanos }: CelDuration): string {
  if (nanos === 0n) return '0';
  const size = nanos < 0n ? -nanos : nanos;
  const sign = nanos < 0n ? '-' : '';
  if (size < 1000n) return `${sign}${size}ns`;
  if (size < 1_000_000n) return `${sign}${size / 1000n}${shortFraction(size % 1000n, 3)}us`;
  if (size < SECOND) return `${sign}${size / 1_000_000n}${shortFraction(size % 1_000_000n, 6)}ms`;
  const hours = size / (3600n * SECOND);
  const minutes = (size / (60n * SECOND)) % 60n;
  const rest = size % (60n * SECOND);
  const seconds = rest === 0n ? '' : `${rest / SECOND}${shortFraction(rest % SECOND, 9)}s`;
  return `${sign}${hours > 0n ? `${hours}h` : ''}${minutes > 0n ? `${minutes}m` : ''}${seconds}`;
}

/** The nanoseconds after the last full second, also of times before 1970. */
function fractionOf(nanos: bigint): bigint {
  return ((nanos % SECOND) + SECOND) % SECOND;
}

function secondsText(nanos: bigint): string {
  const ms = (nanos - fractionOf(nanos)) / 1_000_000n;
  return new Date(Number(ms)).toISOString().slice(0, 19);
}

function groupedFraction(nanos: bigint): string {
  if (nanos === 0n) return '';
  const digits = String(nanos).padStart(9, '0');
  return `.${digits.endsWith('000000') ? digits.slice(0, 3) : digits.endsWith('000') ? digits.slice(0, 6) : digits}`;
}

function shortFraction(part: bigint, digits: number): string {
  return part === 0n ? '' : `.${String(part).padStart(digits, '0').replace(/0+$/, '')}`;
}
