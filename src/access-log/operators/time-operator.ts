// %START_TIME%, %EMIT_TIME% and their _LOCAL forms: the start of a stream or the time of the log line, in ISO form or in a
// strftime-like format.
//
// The text is rendered once per second; within the second only the digits of the fraction are updated.

import { viewOf } from '../../common/copy-bytes.js';
import { Moment, pad2, type Zone } from '../../log/moment.js';
import type { LogBuffer } from '../log-buffer.js';
import type { StreamInfo } from '../stream/stream-info.js';
import { operatorError } from './format-error.js';
import type { Operator } from './operator.js';

/** Returns milliseconds since 1970. */
export type GetTime = (info: StreamInfo) => number;

/** Writes `2016-04-15T20:17:00.310Z`, or the offset of the local zone instead of Z. */
export class IsoTimeOperator implements Operator {
  readonly isNumber = false;
  readonly #get: GetTime;
  readonly #moment: Moment;
  readonly #zone: Zone;
  /** The text of the current second. It contains the digits of the millisecond. */
  #text: DataView = new DataView(new ArrayBuffer(0));
  #millisecond = -1;

  constructor(get: GetTime, zone: Zone) {
    this.#get = get;
    this.#moment = new Moment(zone);
    this.#zone = zone;
  }

  write(info: StreamInfo, out: LogBuffer): boolean {
    const moment = this.#moment;
    const time = this.#get(info);
    if (moment.at(time)) {
      const date = `${moment.year}-${pad2(moment.month)}-${pad2(moment.day)}`;
      const zone = this.#zone === 'utc' ? 'Z' : moment.offset(':');
      this.#text = viewOf(encoder.encode(`${date}T${moment.clock}.000${zone}`));
      this.#millisecond = 0;
    }
    const text = this.#text;
    const millisecond = (time - moment.epochSecond * 1000) | 0;
    if (millisecond !== this.#millisecond) {
      this.#millisecond = millisecond;
      text.setUint8(20, 48 + ((millisecond / 100) | 0));
      text.setUint8(21, 48 + (((millisecond / 10) | 0) % 10));
      text.setUint8(22, 48 + (millisecond % 10));
    }
    out.range(text, 0, text.byteLength);
    return true;
  }
}

/** A text that is constant for a second, or a number of digits of the fraction. */
type Part = ((moment: Moment) => string) | number;

export class FormattedTimeOperator implements Operator {
  readonly isNumber = false;
  readonly #get: GetTime;
  readonly #moment: Moment;
  readonly #parts: readonly Part[];
  /** The texts of the current second, by part. */
  readonly #texts: string[] = [];

  /** Throws a BatonError for a specifier that is unknown or would break the line. */
  constructor(get: GetTime, format: string, zone: Zone) {
    this.#get = get;
    this.#moment = new Moment(zone);
    this.#parts = parseTimeFormat(format);
  }

  write(info: StreamInfo, out: LogBuffer): boolean {
    const moment = this.#moment;
    const parts = this.#parts;
    const texts = this.#texts;
    const time = this.#get(info);
    if (moment.at(time)) {
      for (let i = 0; i < parts.length; i++) {
        const part = parts[i]!;
        texts[i] = typeof part === 'number' ? '' : part(moment);
      }
    }
    for (let i = 0; i < parts.length; i++) {
      const part = parts[i]!;
      if (typeof part === 'number') writeFraction(time - moment.epochSecond * 1000, part, out);
      else out.text(texts[i]!);
    }
    return true;
  }
}

/** Writes the first digits of a second's fraction, which has nanosecond resolution at best. */
function writeFraction(milliseconds: number, digits: number, out: LogBuffer): void {
  const nanoseconds = Math.floor(milliseconds * 1e6);
  out.digits(Math.floor(nanoseconds / 10 ** (9 - digits)), digits);
}

/** `%3f`, `%E3S`, `%E*f`, `%Ez`, `%Y`: a width, absl's extensions, or one letter. */
const SPECIFIER = /%(?:([1-9])f|E([1-9]|\*)([Sf])|(E?[A-Za-z%])|(.?))/gsu;

function parseTimeFormat(format: string): Part[] {
  const parts: Part[] = [];
  let at = 0;
  const literal = (text: string): void => {
    if (text !== '') parts.push(() => text);
  };
  for (const match of format.matchAll(SPECIFIER)) {
    literal(format.slice(at, match.index));
    at = match.index + match[0].length;
    const [all, width, extendedWidth, extended, letter] = match;
    if (width !== undefined) {
      parts.push(Number(width));
    } else if (extended !== undefined) {
      if (extended === 'S') parts.push((moment) => `${pad2(moment.second)}.`);
      parts.push(extendedWidth === '*' ? 9 : Number(extendedWidth));
    } else if (letter === 'f') {
      parts.push(9);
    } else {
      const field = letter === undefined ? undefined : FIELDS[letter];
      if (field === undefined) throw operatorError(`unknown time specifier '${all}'`);
      parts.push(field);
    }
  }
  literal(format.slice(at));
  return parts;
}

/** The specifiers of strftime in the C locale that fit in one line. */
const FIELDS: Readonly<Record<string, (moment: Moment) => string>> = {
  '%': () => '%',
  a: (m) => m.weekdayName.slice(0, 3),
  A: (m) => m.weekdayName,
  b: (m) => m.monthName.slice(0, 3),
  B: (m) => m.monthName,
  c: (m) => `${m.weekdayName.slice(0, 3)} ${m.monthName.slice(0, 3)} ${padSpace(m.day)} ${m.clock} ${m.year}`,
  C: (m) => pad2(Math.floor(m.year / 100)),
  d: (m) => pad2(m.day),
  D: (m) => m.shortDate,
  e: (m) => padSpace(m.day),
  F: (m) => `${m.year}-${pad2(m.month)}-${pad2(m.day)}`,
  h: (m) => m.monthName.slice(0, 3),
  H: (m) => pad2(m.hour),
  I: (m) => pad2(m.hour12),
  j: (m) => String(m.yearDay).padStart(3, '0'),
  m: (m) => pad2(m.month),
  M: (m) => pad2(m.minute),
  p: (m) => m.half,
  r: (m) => m.clock12,
  R: (m) => `${pad2(m.hour)}:${pad2(m.minute)}`,
  s: (m) => String(m.epochSecond),
  S: (m) => pad2(m.second),
  t: () => '\t',
  T: (m) => m.clock,
  u: (m) => String(m.weekday || 7),
  w: (m) => String(m.weekday),
  x: (m) => m.shortDate,
  X: (m) => m.clock,
  y: (m) => pad2(m.year % 100),
  Y: (m) => String(m.year),
  z: (m) => m.offset(''),
  Ez: (m) => m.offset(':'),
  Z: (m) => (m.offsetMinutes === 0 ? 'UTC' : m.offset('')),
};

const encoder = new TextEncoder();

function padSpace(value: number): string {
  return value < 10 ? ` ${value}` : `${value}`;
}
