// The layout of process log lines (--log-format): compiled once into small writers, one a flag.

import { basename } from 'node:path';
import { LEVEL_LETTERS, LEVEL_NAMES, type Level } from './levels.js';
import { Moment, pad2 } from './moment.js';

/** Layout without --log-format. */
export const DEFAULT_LOG_FORMAT = '[%Y-%m-%d %T.%e][%t][%l][%n] [%g:%#] %v';

/** Where a message was written; line 0 when nobody knows. */
export interface SourceLocation {
  /** Path below the package, as `src/server/main.js`. */
  file: string;
  line: number;
  function: string;
}

/** One message with all that a layout may print. */
export interface LogRecord {
  /** Milliseconds since the epoch, with a fraction if the clock has one. */
  epochMs: number;
  level: Level;
  logger: string;
  message: string;
  source: SourceLocation;
}

export interface LogFormatOptions {
  /** Escapes every line but for its end (--log-format-escaped). */
  escaped?: boolean;
  /** For %t; asked for each line that prints it. */
  threadId?: () => number;
  /** For %N. */
  version?: string;
}

export interface LogFormat {
  /** Whether the layout prints where a message was written: otherwise nobody needs to find out. */
  readonly needsSource: boolean;
  /** The line, with its end. */
  format(record: LogRecord): string;
}

type Writer = (record: LogRecord) => string;

/** Compiles a layout. Every text compiles: a flag that does not exist prints itself. */
export function compileLogFormat(pattern: string, options: LogFormatOptions = {}): LogFormat {
  const compiler = new Compiler(options);
  const writers = compiler.compile(pattern);
  const escaped = options.escaped === true;
  return {
    needsSource: compiler.needsSource,
    format(record) {
      compiler.moment.at(record.epochMs);
      let line = '';
      for (let i = 0; i < writers.length; i++) line += writers[i]!(record);
      return `${escaped ? escapeLine(line) : line}\n`;
    },
  };
}

/** A flag, or padding and a flag: alignment, width, and whether longer texts are cut, as in `%-8!n`. */
export const FLAG = /%(?:([-=]?)(\d{1,3})(!?)(.)|(.))/gsu;

class Compiler {
  readonly moment = new Moment('local');
  needsSource = false;
  readonly #options: LogFormatOptions;

  constructor(options: LogFormatOptions) {
    this.#options = options;
  }

  compile(pattern: string): Writer[] {
    const writers: Writer[] = [];
    const literal = (text: string): void => {
      if (text !== '') writers.push(() => text);
    };
    let at = 0;
    for (const match of pattern.matchAll(FLAG)) {
      literal(pattern.slice(at, match.index));
      at = match.index + match[0].length;
      const [all, align = '', width, cut, padFlag, flag = padFlag!] = match;
      const writer = this.#writer(flag);
      if (writer === undefined) literal(all);
      else writers.push(width === undefined ? writer : padded(writer, align, Number(width), cut === '!'));
    }
    literal(pattern.slice(at));
    return writers;
  }

  #writer(flag: string): Writer | undefined {
    const moment = this.moment;
    const { threadId = () => process.pid, version = '' } = this.#options;
    if ('sg@#!'.includes(flag)) this.needsSource = true;
    switch (flag) {
      case 'v':
        return (r) => r.message;
      case '_':
        return (r) => r.message.replaceAll('\n', '\\n');
      case 'j':
        return (r) => JSON.stringify(r.message).slice(1, -1);
      case 'N':
        return () => version;
      case 't':
        return () => `${threadId()}`;
      case 'P':
        return () => `${process.pid}`;
      case 'n':
        return (r) => r.logger;
      case 'l':
        return (r) => LEVEL_NAMES[r.level]!;
      case 'L':
        return (r) => LEVEL_LETTERS[r.level]!;
      case 'a':
        return () => moment.weekdayName.slice(0, 3);
      case 'A':
        return () => moment.weekdayName;
      case 'b':
        return () => moment.monthName.slice(0, 3);
      case 'B':
        return () => moment.monthName;
      case 'c':
        return () =>
          `${moment.weekdayName.slice(0, 3)} ${moment.monthName.slice(0, 3)} ${moment.day} ${moment.clock} ${moment.year}`;
      case 'C':
        return () => pad2(moment.year % 100);
      case 'Y':
        return () => `${moment.year}`;
      case 'D':
      case 'x':
        return () => moment.shortDate;
      case 'm':
        return () => pad2(moment.month);
      case 'd':
        return () => pad2(moment.day);
      case 'H':
        return () => pad2(moment.hour);
      case 'I':
        return () => pad2(moment.hour12);
      case 'M':
        return () => pad2(moment.minute);
      case 'S':
        return () => pad2(moment.second);
      case 'e':
        return (r) => fraction(r.epochMs, 3);
      case 'f':
        return (r) => fraction(r.epochMs, 6);
      case 'F':
        return (r) => fraction(r.epochMs, 9);
      case 'p':
        return () => moment.half;
      case 'r':
        return () => moment.clock12;
      case 'R':
        return () => `${pad2(moment.hour)}:${pad2(moment.minute)}`;
      case 'T':
      case 'X':
        return () => moment.clock;
      case 'z':
        return () => moment.offset(':');
      case '%':
        return () => '%';
      case '@':
        return (r) => `${r.source.file}:${r.source.line}`;
      case 's':
        return (r) => basename(r.source.file);
      case 'g':
        return (r) => r.source.file;
      case '#':
        return (r) => `${r.source.line}`;
      case '!':
        return (r) => r.source.function;
      default:
        return undefined;
    }
  }
}

function padded(writer: Writer, align: string, width: number, cut: boolean): Writer {
  return (record) => {
    const text = writer(record);
    if (text.length >= width) return cut ? text.slice(0, width) : text;
    if (align === '-') return text.padEnd(width);
    if (align === '=') return text.padStart(text.length + Math.floor((width - text.length) / 2)).padEnd(width);
    return text.padStart(width);
  };
}

/** The part of the second, with so many digits. The clock gives microseconds at best: a double holds no more today. */
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

/** C escapes for what would break a line; other control bytes and those above 126 in octal. */
function escapeLine(line: string): string {
  return line.replace(/[^\x20-\x7e]|["'\\]/gu, (char) => {
    const known = C_ESCAPES[char];
    if (known !== undefined) return known;
    let octal = '';
    for (const byte of Buffer.from(char)) octal += `\\${byte.toString(8).padStart(3, '0')}`;
    return octal;
  });
}
