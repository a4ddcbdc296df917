// Parts of times and durations: getHours() and its relatives.

import { CelDuration, CelTimestamp, type CelValue, textOf } from '../values.js';
import type { CelFunction, Result } from './function-table.js';

type Part = (local: Date) => number;

const DAY_MS = 86_400_000;

export const TIMES: readonly (readonly [string, CelFunction])[] = [
  part('getFullYear', (local) => local.getUTCFullYear()),
  part('getMonth', (local) => local.getUTCMonth()),
  part('getDayOfYear', (local) => Math.floor((local.getTime() - startOfYear(local)) / DAY_MS)),
  part('getDayOfMonth', (local) => local.getUTCDate() - 1),
  part('getDate', (local) => local.getUTCDate()),
  part('getDayOfWeek', (local) => local.getUTCDay()),
  part('getHours', (local) => local.getUTCHours(), 3_600_000_000_000n),
  part('getMinutes', (local) => local.getUTCMinutes(), 60_000_000_000n),
  part('getSeconds', (local) => local.getUTCSeconds(), 1_000_000_000n),
  part('getMilliseconds', (local) => local.getUTCMilliseconds(), 1_000_000n),
];

/** `unit`: nanoseconds of the part of a duration, which has the parts of hours and less. */
function part(name: string, of: Part, unit?: bigint): readonly [string, CelFunction] {
  const apply = (a: CelValue, zone: CelValue | undefined): Result => {
    if (a instanceof CelTimestamp) return zonePart(a, zone, of);
    if (unit === undefined || !(a instanceof CelDuration) || zone !== undefined) return undefined;
    return unit === 1_000_000n ? (a.nanos / unit) % 1000n : a.nanos / unit;
  };
  return [name, { least: 1, most: 2, style: 'method', apply }];
}

function zonePart({ nanos }: CelTimestamp, zone: CelValue | undefined, of: Part): Result {
  const ms = Number((nanos - (((nanos % 1_000_000n) + 1_000_000n) % 1_000_000n)) / 1_000_000n);
  const offset = zone === undefined ? 0 : typeof zone === 'string' ? offsetOf(textOf(zone), ms) : undefined;
  return offset === undefined ? undefined : BigInt(of(new Date(ms + offset)));
}

function startOfYear(local: Date): number {
  return Date.UTC(local.getUTCFullYear(), 0, 1);
}

/** Returns the milliseconds that a time zone is ahead of UTC at a time; undefined: there is no such zone. */
function offsetOf(zone: string, ms: number): number | undefined {
  const fixed = /^([+-]?)(\d{1,2}):(\d{2})$/.exec(zone);
  if (fixed !== null) {
    const minutes = Number(fixed[2]) * 60 + Number(fixed[3]);
    return (fixed[1] === '-' ? -minutes : minutes) * 60_000;
  }
  const parts = formatOf(zone)?.formatToParts(ms);
  if (parts === undefined) return undefined;
  const { day, hour, minute, month, second, year } = Object.fromEntries(
    parts.map(({ type, value }) => [type, Number(value)]),
  ) as Record<'year' | 'month' | 'day' | 'hour' | 'minute' | 'second', number>;
  const local = Date.UTC(year, month - 1, day, hour % 24, minute, second);
  return local - Math.floor(ms / 1000) * 1000;
}

/** A format is expensive to create. Names may come from clients, so that few are kept. */
const formats = new Map<string, Intl.DateTimeFormat | undefined>();
const MAX_FORMATS = 64;
/** Characters of a name; longer ones do not exist. */
const MAX_ZONE = 64;

function formatOf(zone: string): Intl.DateTimeFormat | undefined {
  if (zone.length > MAX_ZONE) return undefined;
  if (formats.has(zone)) return formats.get(zone);
  const format = newFormat(zone);
  if (formats.size >= MAX_FORMATS) formats.clear();
  formats.set(zone, format);
  return format;
}

function newFormat(zone: string): Intl.DateTimeFormat | undefined {
  try {
    const number = 'numeric';
    return new Intl.DateTimeFormat('en-u-ca-gregory-nu-latn', {
      timeZone: zone,
      hourCycle: 'h23',
      year: number,
      month: number,
      day: number,
      hour: number,
      minute: number,
      second: number,
    });
  } catch {
    return undefined;
  }
}
