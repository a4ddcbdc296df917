// The layout of log lines (--log-format), compiled once into a list of writers, one per flag.

import { basename } from 'node:path';
import { indentedLines, joinedLines } from '../common/text/shown.js';
import type { MessageLevel } from './levels.js';
import { Moment, pad2 } from './moment.js';

/** Default of --log-format. */
export const DEFAULT_LOG_FORMAT = '[%Y-%m-%d %T.%e][%t][%l][%n] [%g:%#] %v';

/** The place that logged a message; line 0 if unknown. */
export interface SourceLocation {
  /** Path relative to the package, such as `src/server/main.js`. */
  file: string;
  line: number;
  function: string;
}

/** One message with all values that a layout may print. */
export interface LogRecord {
  /** Milliseconds since the epoch, with a fraction if the clock has one. */
  epochMs: number;
  level: MessageLevel;
  logger: string;
  message: string;
  source: SourceLocation;
}

export interface LogFormatOptions {
  /** Escapes each line except for its line end (--log-format-escaped). */
  escaped?: boolean;
  /** For %t; called for each line that prints it. */
  threadId?: () => number;
  /** For %N. */
  version?: string;
}

export interface LogFormat {
  /** Whether the layout prints the source location, which is costly to determine. */
  readonly needsSource: boolean;
  /** Returns the line with its line end. */
  format(record: LogRecord): string;
}

/** A compiled text with flags. */
export interface FlagText {
  readonly needsSource: boolean;
  print(record: LogRecord): string;
}

type Writer = (record: LogRecord, moment: Moment) => string;

/** Compiles a layout. Every text compiles: an unknown flag prints itself. */
export function compileLogFormat(pattern: string, options: LogFormatOptions = {}): LogFormat {
  const text = compileFlags(pattern, options);
  return {
    needsSource: text.needsSource,
    format: options.escaped === true ? (r) => `${escapeLine(text.print(r))}\n` : (r) => `${text.print(r)}\n`,
  };
}

/** Compiles a text with flags. `own`: writers that replace the default ones. */
export function compileFlags(
  pattern: string,
  { escaped = false, threadId = () => process.pid, version = '' }: LogFormatOptions,
  own: Readonly<Record<string, Writer>> = {},
): FlagText {
  const messages = escaped ? RAW_MESSAGES : MESSAGES;
  let lastMs: number | undefined;
  /** Microseconds since the message before, which is as fine as the clock. */
  let sinceLast = 0;
  const known: Readonly<Record<string, Writer>> = {
    ...WRITERS,
    ...messages,
    O: () => `${Math.floor(sinceLast / 1e6)}`,
    o: () => `${Math.floor(sinceLast / 1e3)}`,
    i: () => `${sinceLast}`,
    u: () => `${sinceLast}000`.replace(/^0+(?=0)/, ''),
    N: () => version,
    t: () => `${threadId()}`,
    ...own,
  };
  const moment = new Moment('local');
  const writers: Writer[] = [];
  let needsSource = false;
  const literal = (text: string): void => {
    if (text !== '') writers.push(() => text);
  };
  let at = 0;
  for (const match of pattern.matchAll(FLAG)) {
    literal(pattern.slice(at, match.index));
    at = match.index + match[0].length;
    const [all, align = '', width, cut, padFlag, flag = padFlag!] = match;
    const writer = known[flag];
    needsSource ||= 'sg@#!'.includes(flag);
    if (writer === undefined) literal(all);
    else writers.push(width === undefined ? writer : padded(writer, align, Number(width), cut === '!'));
  }
  literal(pattern.slice(at));
  return {
    needsSource,
    print(record) {
      moment.at(record.epochMs);
      sinceLast = Math.max(0, Math.round((record.epochMs - (lastMs ?? record.epochMs)) * 1e3));
      lastMs = record.epochMs;
      let text = '';
      for (let i = 0; i < writers.length; i++) text += writers[i]!(record, moment);
      return text;
    },
  };
}

/** Matches a flag, or padding and a flag: alignment, width, and `!` to cut longer texts, as in `%-8!n`. */
export const FLAG = /%(?:([-=]?)(\d{1,3})(!?)(.)|(.))/gsu;

/** Message flags for lines that are escaped as a whole. */
const RAW_MESSAGES: Readonly<Record<string, Writer>> = {
  v: (r) => r.message,
  _: (r) => r.message.replaceAll('\n', '\\n'),
};
/**
 * Message flags that escape control characters and indent further lines: a message may quote data from a peer, which must neither
 * control a terminal nor begin a line.
 */
const MESSAGES: Readonly<Record<string, Writer>> = {
  v: (r) => indentedLines(r.message),
  _: (r) => joinedLines(r.message),
};

/** The flags of spdlog that do not depend on options. */
const WRITERS: Readonly<Record<string, Writer>> = {
  j: (r) => JSON.stringify(r.message).slice(1, -1),
  P: () => `${process.pid}`,
  n: (r) => r.logger,
  l: (r) => r.level,
  L: (r) => r.level.charAt(0).toUpperCase(),
  a: (_, m) => m.weekdayName.slice(0, 3),
  A: (_, m) => m.weekdayName,
  b: (_, m) => m.monthName.slice(0, 3),
  h: (_, m) => m.monthName.slice(0, 3),
  B: (_, m) => m.monthName,
  c: (_, m) => `${m.weekdayName.slice(0, 3)} ${m.monthName.slice(0, 3)} ${m.day} ${m.clock} ${m.year}`,
  C: (_, m) => pad2(m.year % 100),
  Y: (_, m) => `${m.year}`,
  D: (_, m) => m.shortDate,
  x: (_, m) => m.shortDate,
  m: (_, m) => pad2(m.month),
  d: (_, m) => pad2(m.day),
  H: (_, m) => pad2(m.hour),
  I: (_, m) => pad2(m.hour12),
  M: (_, m) => pad2(m.minute),
  S: (_, m) => pad2(m.second),
  E: (r) => `${Math.floor(r.epochMs / 1000)}`,
  e: (r) => fraction(r.epochMs, 3),
  f: (r) => fraction(r.epochMs, 6),
  F: (r) => fraction(r.epochMs, 9),
  p: (_, m) => m.half,
  r: (_, m) => m.clock12,
  R: (_, m) => `${pad2(m.hour)}:${pad2(m.minute)}`,
  T: (_, m) => m.clock,
  X: (_, m) => m.clock,
  z: (_, m) => m.offset(':'),
  '%': () => '%',
  // The range of a line in colour. Logs have none.
  '^': () => '',
  $: () => '',
  '@': (r) => `${r.source.file}:${r.source.line}`,
  s: (r) => basename(r.source.file),
  g: (r) => r.source.file,
  '#': (r) => `${r.source.line}`,
  '!': (r) => r.source.function,
};

function padded(writer: Writer, align: string, width: number, cut: boolean): Writer {
  return (record, moment) => {
    const text = writer(record, moment);
    if (text.length >= width) return cut ? text.slice(0, width) : text;
    if (align === '-') return text.padEnd(width);
    if (align === '=') return text.padStart(text.length + Math.floor((width - text.length) / 2)).padEnd(width);
    return text.padStart(width);
  };
}

/**
 * Returns the fraction of the second with that many digits. The clock has at most microseconds: a double cannot hold more
 * today.
 */
function fraction(epochMs: number, digits: 3 | 6 | 9): string {
  const micros = Math.floor((epochMs - Math.floor(epochMs / 1000) * 1000) * 1000);
  return String(micros).padStart(6, '0').padEnd(9, '0').slice(0, digits);
}

const C_ESCAPES: Readonly<Record<string, string>> = {
  '\n': '\\n',
  '\r': '\\r',
  '\t': '\\t',
  '"': '\\"',
  "'": "\\'",
  '\\': '\\\\',
};

/** Replaces characters that would break a line by C escapes, and other control bytes and bytes above 126 by octal escapes. */
function escapeLine(line: string): string {
  return line.replace(/[^\x20-\x7e]|["'\\]/gu, (char) => {
    const known = C_ESCAPES[char];
    if (known !== undefined) return known;
    let octal = '';
    for (const byte of Buffer.from(char)) octal += `\\${byte.toString(8).padStart(3, '0')}`;
    return octal;
  });
}
