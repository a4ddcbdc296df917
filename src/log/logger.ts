// Component loggers of one thread: getLogger() anywhere, initLogging() once a thread when the options are known.
//
// A disabled message costs one comparison. With fine-grain logging the level belongs to the file that called
// getLogger(), otherwise to the component.

import { type Bindings, type DestinationStream, type Logger as PinoLogger, pino } from 'pino';
import { BatonError, messageOf } from '../common/errors.js';
import { COMPONENTS, type Component, isComponent } from './components.js';
import { Level, parseLevel } from './levels.js';
import {
  compileLogFormat,
  DEFAULT_LOG_FORMAT,
  type LogFormat,
  type LogFormatOptions,
  type LogRecord,
  type SourceLocation,
} from './log-format.js';
import { type LogSink, openLogSink } from './log-sink.js';
import { callerOf, UNKNOWN_SOURCE } from './source-location.js';

export interface LoggingOptions extends LogFormatOptions {
  /** Level of all loggers; info by default. */
  level?: Level;
  /** Levels that differ from it, by component. */
  componentLevels?: readonly ComponentLevel[];
  /** File to append to; standard error without one. */
  path?: string;
  /** Layout of lines; DEFAULT_LOG_FORMAT by default. */
  format?: string;
  /** Loggers by file instead of component (--enable-fine-grain-logging). */
  fineGrain?: boolean;
  /** Stack traces are one entry (--log-stacktrace-single-entry) instead of one a frame. */
  singleEntryStacks?: boolean;
}

export interface ComponentLevel {
  component: Component;
  level: Level;
}

/** A logger's name and level, as POST /logging lists them. */
export interface LoggerState {
  name: string;
  level: Level;
}

/** Writes messages of one component from one file. */
export class Logger {
  /** The component. */
  readonly name: Component;
  /** The file that asked for this logger, below the package. */
  readonly file: string;
  /** Messages below this level are not printed. Set by the functions of this module. */
  level: Level = Level.Info;
  readonly #pino: PinoLogger;

  constructor(name: Component, file: string, pinoLogger: PinoLogger) {
    this.name = name;
    this.file = file;
    this.#pino = pinoLogger;
  }

  /** For messages that are costly to make. */
  get isTrace(): boolean {
    return this.level <= Level.Trace;
  }
  get isDebug(): boolean {
    return this.level <= Level.Debug;
  }
  get isInfo(): boolean {
    return this.level <= Level.Info;
  }

  trace(message: string): void {
    if (this.level <= Level.Trace) this.#write(Level.Trace, message, this.trace);
  }
  debug(message: string): void {
    if (this.level <= Level.Debug) this.#write(Level.Debug, message, this.debug);
  }
  info(message: string): void {
    if (this.level <= Level.Info) this.#write(Level.Info, message, this.info);
  }
  warning(message: string): void {
    if (this.level <= Level.Warning) this.#write(Level.Warning, message, this.warning);
  }
  error(message: string): void {
    if (this.level <= Level.Error) this.#write(Level.Error, message, this.error);
  }
  critical(message: string): void {
    if (this.level <= Level.Critical) this.#write(Level.Critical, message, this.critical);
  }

  /** An error or a critical message with the stack of what was thrown, one entry a frame or one in all. */
  exception(level: Level.Error | Level.Critical, message: string, thrown: unknown): void {
    if (this.level > level) return;
    const stack = thrown instanceof Error ? (thrown.stack ?? `${thrown}`) : String(thrown);
    const text = `${message}: ${stack}`;
    const entries = thread.singleEntryStacks ? [text] : text.split('\n');
    for (const entry of entries) this.#write(level, entry, this.exception);
  }

  #write(level: Exclude<Level, Level.Off>, message: string, method: (...args: never[]) => void): void {
    thread.source = thread.format.needsSource ? callerOf(method) : UNKNOWN_SOURCE;
    this.#pino[PINO_METHODS[level]!](message);
  }
}

/** This thread's logger for a component and the calling file: asked for once, when a module is loaded. */
export function getLogger(component: Component): Logger {
  const { file } = callerOf(getLogger);
  const key = `${component} ${file}`;
  let logger = loggers.get(key);
  if (logger === undefined) {
    logger = new Logger(component, file, root.child({ component, file }));
    logger.level = levelOf(logger);
    loggers.set(key, logger);
  }
  return logger;
}

/**
 * Sets this thread's levels, layout and destination, also for loggers that exist already. Throws
 * `Failed to open log-file …` and leaves everything as it was when the file cannot be opened.
 */
export function initLogging(options: LoggingOptions): void {
  const sink = openLogSink(options.path);
  thread.sink = sink;
  thread.format = compileLogFormat(options.format ?? DEFAULT_LOG_FORMAT, options);
  thread.fineGrain = options.fineGrain === true;
  thread.singleEntryStacks = options.singleEntryStacks === true;
  fileLevels.length = 0;
  setLevel(options.level ?? Level.Info);
  for (const { component, level } of options.componentLevels ?? []) setComponentLevel(component, level);
}

/** Replaces the layout (application_log_config, which is known later than the options). */
export function setLogFormat(format: string, options: LogFormatOptions): void {
  thread.format = compileLogFormat(format, options);
}

/** Gives all loggers this level. */
export function setLevel(level: Level): void {
  thread.level = level;
  componentLevels.clear();
  fileLevels.length = 0;
  applyLevels();
}

export function setComponentLevel(component: Component, level: Level): void {
  componentLevels.set(component, level);
  applyLevels();
}

/**
 * With fine-grain logging: gives files that match a pattern a level, later calls win. `*` and `?` are wildcards; a
 * pattern with a slash is for whole paths, another one for file names without their suffix.
 */
export function setFileLevel(pattern: string, level: Level): void {
  fileLevels.push({ matches: fileMatcher(pattern), level });
  applyLevels();
}

export function isFineGrain(): boolean {
  return thread.fineGrain;
}

/** Every logger with its level, in the order users know: components, or files by name with fine-grain logging. */
export function loggerStates(): LoggerState[] {
  if (thread.fineGrain) {
    const files = new Map<string, Level>();
    for (const logger of loggers.values()) files.set(logger.file, logger.level);
    return [...files].sort(([a], [b]) => (a < b ? -1 : 1)).map(([name, level]) => ({ name, level }));
  }
  return COMPONENTS.map((name) => ({ name, level: componentLevels.get(name) ?? thread.level }));
}

/** Opens the file of --log-path anew. Failure is logged, to the file that is still open. */
export function reopenLog(): void {
  try {
    thread.sink.reopen();
  } catch (error) {
    getLogger('file').error(messageOf(error));
  }
}

/**
 * The argument of --component-log-level: `upstream:debug,connection:trace`. Throws with the message for the user when
 * an item has no colon or several, or names no component or level.
 */
export function parseComponentLevels(text: string): ComponentLevel[] {
  if (text === '') return [];
  return text.split(',').map((item) => {
    const [component, levelName, ...rest] = item.split(':');
    if (levelName === undefined || rest.length > 0)
      throw optionError(`component log level not correctly specified '${item}'`);
    const level = parseLevel(levelName);
    if (level === undefined) throw optionError(`invalid log level specified '${levelName}'`);
    if (!isComponent(component!)) throw optionError(`invalid component specified '${component}'`);
    return { component, level };
  });
}

function optionError(message: string): BatonError {
  return new BatonError('OPTION_INVALID', message, { where: '--component-log-level' });
}

/** Pino's names of the levels. */
const PINO_METHODS = ['trace', 'debug', 'info', 'warn', 'error', 'fatal'] as const;

/** All that this thread's loggers share. */
const thread = {
  level: Level.Info as Level,
  format: compileLogFormat(DEFAULT_LOG_FORMAT) as LogFormat,
  /** Standard error until initLogging() says otherwise. */
  sink: openLogSink(undefined) as LogSink,
  fineGrain: false,
  singleEntryStacks: false,
  /** Of the message that is being written. */
  source: UNKNOWN_SOURCE as SourceLocation,
};
const loggers = new Map<string, Logger>();
const componentLevels = new Map<Component, Level>();
const fileLevels: { matches: (file: string) => boolean; level: Level }[] = [];
const record: LogRecord = { epochMs: 0, level: Level.Info, logger: '', message: '', source: UNKNOWN_SOURCE };

/** Pino hands over what it was given beside the text that it made: the metadata symbol asks for that. */
const destination: DestinationStream & {
  lastLevel?: number;
  lastMsg?: string;
  lastLogger?: PinoLogger;
} = {
  write() {
    const { component, file } = this.lastLogger!.bindings() as Bindings & { component: string; file: string };
    record.epochMs = now();
    record.level = this.lastLevel! / 10 - 1;
    record.logger = thread.fineGrain ? file : component;
    record.message = this.lastMsg!;
    record.source = thread.source;
    thread.sink.write(thread.format.format(record));
  },
};
Object.assign(destination, { [Symbol.for('pino.metadata')]: true });

process.once('exit', () => thread.sink.drain());

const root = pino({ level: 'trace', base: null, timestamp: false }, destination);

let clockOffsetMs = performance.timeOrigin;

/** Wall-clock time with microseconds: the monotonic clock, set anew when somebody has changed the wall clock. */
function now(): number {
  const monotonicMs = performance.now();
  const wallMs = Date.now();
  if (Math.abs(clockOffsetMs + monotonicMs - wallMs) > 2) clockOffsetMs = wallMs - monotonicMs;
  return clockOffsetMs + monotonicMs;
}

function levelOf(logger: Logger): Level {
  if (!thread.fineGrain) return componentLevels.get(logger.name) ?? thread.level;
  return fileLevels.findLast((rule) => rule.matches(logger.file))?.level ?? thread.level;
}

function applyLevels(): void {
  for (const logger of loggers.values()) logger.level = levelOf(logger);
}

function fileMatcher(pattern: string): (file: string) => boolean {
  const whole = pattern.includes('/');
  return (file) => matchesGlob(whole ? file : file.slice(file.lastIndexOf('/') + 1).replace(/\..*$/u, ''), pattern);
}

/** Wildcards without backtracking: after a mismatch only the last star takes one character more. */
function matchesGlob(text: string, pattern: string): boolean {
  let at = 0;
  let next = 0;
  let star = -1;
  let starAt = 0;
  while (at < text.length) {
    if (pattern[next] === '*') {
      star = next++;
      starAt = at;
    } else if (next < pattern.length && (pattern[next] === '?' || pattern[next] === text[at])) {
      at++;
      next++;
    } else if (star >= 0) {
      next = star + 1;
      at = ++starAt;
    } else {
      return false;
    }
  }
  while (pattern[next] === '*') next++;
  return next === pattern.length;
}
