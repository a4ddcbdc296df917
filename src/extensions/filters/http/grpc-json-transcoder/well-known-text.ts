// The JSON forms of google.protobuf.Timestamp, Duration and FieldMask. Their parsers return an error message for an invalid text.

export interface SecondsAndNanos {
  readonly seconds: bigint;
  readonly nanos: number;
}

const NANOS = 1_000_000_000;
/** 0001-01-01T00:00:00Z and 9999-12-31T23:59:59Z. */
const MIN_SECONDS = -62_135_596_800;
const MAX_SECONDS = 253_402_300_799;
/** 10,000 years. */
const MAX_DURATION = 315_576_000_000;

const TIME = /^(\d{4})-(\d{2})-(\d{2})T(\d{2}):(\d{2}):(\d{2})$/;
const ZONE = /^(.*)(?:Z|([+-])(\d{2}):(\d{2}))$/;

const BAD_ZONE = "Illegal timestamp format; timestamps must end with 'Z' or have a valid timezone offset.";
const BAD_FORMAT = 'Invalid time format: Failed to parse input';
const BAD_RANGE = 'Timestamp value exceeds limits';

export function parseTimestamp(text: string): SecondsAndNanos | string {
  const zone = ZONE.exec(text);
  if (zone === null) return BAD_ZONE;
  const [, local = '', sign, hours, minutes] = zone;
  const offset = sign === undefined ? 0 : (Number(hours) * 60 + Number(minutes)) * 60 * (sign === '-' ? -1 : 1);
  const dot = local.indexOf('.');
  const whole = dot < 0 ? local : local.slice(0, dot);
  const nanos = dot < 0 ? 0 : parseNanos(local.slice(dot + 1));
  if (nanos === undefined) return BAD_RANGE;
  const parts = TIME.exec(whole);
  if (parts === null) return BAD_FORMAT;
  const [year, month, day, hour, minute, second] = parts.slice(1).map(Number) as [
    number,
    number,
    number,
    number,
    number,
    number,
  ];
  const date = new Date(0);
  date.setUTCFullYear(year, month - 1, day);
  date.setUTCHours(hour, minute, second);
  const isReal = date.getUTCMonth() === month - 1 && date.getUTCDate() === day;
  if (!isReal || hour > 23 || minute > 59 || second > 59) return 'Invalid time format: Out-of-range field';
  const seconds = date.getTime() / 1000 - offset;
  return seconds < MIN_SECONDS || seconds > MAX_SECONDS ? BAD_RANGE : { seconds: BigInt(seconds), nanos };
}

/** Returns the text, or that of an error. */
export function timestampText(seconds: bigint, nanos: number): { text: string } | { error: string } {
  if (seconds < MIN_SECONDS) return { error: 'minimum acceptable time value is 0001-01-01T00:00:00Z' };
  if (seconds > MAX_SECONDS) return { error: 'maximum acceptable time value is 9999-12-31T23:59:59Z' };
  if (nanos < 0 || nanos >= NANOS) return { error: 'nanos must be between 0 and 999999999' };
  const whole = new Date(Number(seconds) * 1000).toISOString().slice(0, -5);
  return { text: `${whole}${fraction(nanos)}Z` };
}

export function parseDuration(text: string): SecondsAndNanos | string {
  if (!text.endsWith('s')) return "Illegal duration format; duration must end with 's'";
  const isNegative = text.startsWith('-');
  const number = text.slice(isNegative ? 1 : 0, -1);
  const dot = number.indexOf('.');
  const whole = dot < 0 ? number : number.slice(0, dot);
  if (!/^[0-9]{1,19}$/.test(whole)) return 'Invalid duration format, failed to parse seconds';
  const nanos = dot < 0 || dot === number.length - 1 ? 0 : parseNanos(number.slice(dot + 1));
  if (nanos === undefined) return 'Invalid duration format, failed to parse nanos seconds';
  const seconds = Number(whole);
  if (seconds > MAX_DURATION) return 'Duration value exceeds limits';
  return isNegative ? { seconds: BigInt(-seconds), nanos: -nanos } : { seconds: BigInt(seconds), nanos };
}

/** Returns the text, or that of an error. */
export function durationText(seconds: bigint, nanos: number): { text: string } | { error: string } {
  const magnitude = seconds < 0n ? -seconds : seconds;
  if (magnitude > MAX_DURATION) return { error: 'duration out of range' };
  if (nanos <= -NANOS || nanos >= NANOS) return { error: 'duration out of range' };
  if ((seconds > 0n && nanos < 0) || (seconds < 0n && nanos > 0))
    return { error: 'nanos and seconds signs do not match' };
  const sign = seconds < 0n || nanos < 0 ? '-' : '';
  return { text: `${sign}${magnitude}${fraction(Math.abs(nanos))}s` };
}

/** Returns the paths of a mask, in the case of field names. */
export function maskPaths(text: string): string[] {
  if (text === '') return [];
  return text.split(',').map((path) => path.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`));
}

export function maskText(paths: readonly string[]): string {
  return paths.map((path) => path.replace(/_+(.?)/g, (_, next: string) => next.toUpperCase())).join(',');
}

/** Returns up to nine digits of a fraction as nanoseconds. */
function parseNanos(digits: string): number | undefined {
  return /^[0-9]{1,9}$/.test(digits) ? Number(digits.padEnd(9, '0')) : undefined;
}

/** Returns three, six or nine digits after a dot; nothing for 0. */
function fraction(nanos: number): string {
  if (nanos === 0) return '';
  const digits = String(nanos).padStart(9, '0');
  if (digits.endsWith('000000')) return `.${digits.slice(0, 3)}`;
  return `.${digits.endsWith('000') ? digits.slice(0, 6) : digits}`;
}
