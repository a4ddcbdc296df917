// Component loggers of one thread: getLogger() anywhere, initLogging() once a thread when the options are known.
//
// A disabled message costs one comparison. With fine-grain logging the level belongs to the file that called
// getLogger(), otherwise to the component.

import { messageOf } from '../common/errors/errors.js';
import { sourceStack } from '../common/package/source-places.js';
import { COMPONENTS, type Component } from './components.js';
import { type ComponentLevel, type LevelRules, levelFor } from './level-rules.js';
import { Level } from './levels.js';
import {
  compileLogFormat,
  DEFAULT_LOG_FORMAT,
  type LogFormat,
  type LogFormatOptions,
  type LogRecord,
} from './log-format.js';
import { LogSink } from './log-sink.js';
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

const REOPEN_RETRY_MS = 1000;

/** A logger's name and level, as POST /logging lists them. */
export interface LoggerState {
  name: string;
  level: Level;
}

/** A file that has a logger. */
export interface LoggerFile {
  readonly component: Component;
  readonly file: string;
}

/** Writes messages of one component from one file. */
export class Logger {
  /** The component. */
  readonly name: Component;
  /** The file that asked for this logger, below the package. */
  readonly file: string;
  /** Messages below this level are not printed. Set by the functions of this module. */
  level: Level = Level.Info;

  constructor(name: Component, file: string) {
    this.name = name;
    this.file = file;
  }

  /** For messages that are costly to make. */
  get isDebug(): boolean {
    return this.level <= Level.Debug;
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
    const stack = thrown instanceof Error ? sourceStack(thrown.stack ?? `${thrown}`) : String(thrown);
    const text = `${message}: ${stack}`;
    const entries = thread.singleEntryStacks ? [text] : text.split('\n');
    for (const entry of entries) this.#write(level, entry, this.exception);
  }

  #write(level: Exclude<Level, Level.Off>, message: string, method: (...args: never[]) => void): void {
    record.epochMs = now();
    record.level = level;
    record.logger = thread.fineGrain ? this.file : this.name;
    record.message = message;
    record.source = thread.format.needsSource ? callerOf(method) : UNKNOWN_SOURCE;
    thread.sink.write(thread.format.format(record));
  }
}

/** This thread's logger for a component and the calling file: asked for once, when a module is loaded. */
export function getLogger(component: Component): Logger {
  const { file } = callerOf(getLogger);
  const key = `${component} ${file}`;
  let logger = loggers.get(key);
  if (logger === undefined) {
    logger = new Logger(component, file);
    logger.level = levelFor(thread.levels, component, file);
    loggers.set(key, logger);
    thread.onNewLogger?.({ component, file });
  }
  return logger;
}

/**
 * Sets this thread's levels, layout and destination, also for loggers that exist already. Throws
 * `Failed to open log-file …` and leaves everything as it was when the file cannot be opened.
 */
export function initLogging(options: LoggingOptions): void {
  thread.sink = new LogSink(options.path);
  thread.format = compileLogFormat(options.format ?? DEFAULT_LOG_FORMAT, options);
  thread.fineGrain = options.fineGrain === true;
  thread.singleEntryStacks = options.singleEntryStacks === true;
  setLevelRules({ level: options.level ?? Level.Info, components: options.componentLevels ?? [], overrides: [] });
}

/** Replaces the layout (application_log_config, which is known later than the options). */
export function setLogFormat(format: string, options: LogFormatOptions): void {
  thread.format = compileLogFormat(format, options);
}

/** The levels of this thread's loggers. */
export function levelRules(): LevelRules {
  return thread.levels;
}

/** Gives all loggers of this thread, those to come included, their levels. */
export function setLevelRules(rules: LevelRules): void {
  thread.levels = rules;
  for (const logger of loggers.values()) logger.level = levelFor(rules, logger.name, logger.file);
}

/** Files that have a logger in this thread. `onNew` is called with each that gets one later. */
export function watchLoggerFiles(onNew: (file: LoggerFile) => void): LoggerFile[] {
  thread.onNewLogger = onNew;
  return [...loggers.values()].map(({ name, file }) => ({ component: name, file }));
}

/** Files that have a logger in another thread: loggerFiles() and loggerStates() name them too. */
export function noteLoggerFiles(files: readonly LoggerFile[]): void {
  for (const file of files) otherFiles.set(`${file.component} ${file.file}`, file);
}

/** Files that have a logger in this thread or in another one that is known of. */
export function loggerFiles(): LoggerFile[] {
  const own = [...loggers.values()].map(({ name, file }) => ({ component: name, file }));
  return [...own, ...otherFiles.values()];
}

/** Whether loggers go by file instead of component. */
export function isFineGrain(): boolean {
  return thread.fineGrain;
}

/** Every logger with its level, in the order users know: components, or files by name with fine-grain logging. */
export function loggerStates(): LoggerState[] {
  const { levels } = thread;
  if (thread.fineGrain) {
    const files = new Map<string, Level>();
    for (const { component, file } of loggerFiles()) files.set(file, levelFor(levels, component, file));
    return [...files].sort(([a], [b]) => (a < b ? -1 : 1)).map(([name, level]) => ({ name, level }));
  }
  return COMPONENTS.map((name) => ({ name, level: levelFor(levels, name, '') }));
}

/** Opens the file of --log-path anew. Failure is logged, to the file that is still open, and it is tried again until it works. */
export function reopenLog(): void {
  const error = tryToReopen();
  if (error !== undefined) getLogger('file').error(`${messageOf(error)}; it is tried again`);
}

/** Gives what stands against it. */
function tryToReopen(): unknown {
  clearTimeout(thread.reopening);
  try {
    thread.sink.reopen();
    return undefined;
  } catch (error) {
    thread.reopening = setTimeout(() => {
      if (tryToReopen() === undefined) getLogger('file').info('the log file is open anew');
    }, REOPEN_RETRY_MS).unref();
    return error;
  }
}

/** All that this thread's loggers share. */
const thread = {
  levels: { level: Level.Info, components: [], overrides: [] } as LevelRules,
  onNewLogger: undefined as ((file: LoggerFile) => void) | undefined,
  format: compileLogFormat(DEFAULT_LOG_FORMAT) as LogFormat,
  /** Standard error until initLogging() says otherwise. */
  sink: new LogSink(undefined),
  fineGrain: false,
  singleEntryStacks: false,
  /** Set while the file could not be opened anew. */
  reopening: undefined as NodeJS.Timeout | undefined,
};
const loggers = new Map<string, Logger>();
/** Of other threads. */
const otherFiles = new Map<string, LoggerFile>();
/** The message that is being written. */
const record: LogRecord = { epochMs: 0, level: Level.Info, logger: '', message: '', source: UNKNOWN_SOURCE };

process.once('exit', () => thread.sink.drain());

let clockOffsetMs = performance.timeOrigin;

/** Wall-clock time with microseconds: the monotonic clock, set anew when somebody has changed the wall clock. */
function now(): number {
  const monotonicMs = performance.now();
  const wallMs = Date.now();
  if (Math.abs(clockOffsetMs + monotonicMs - wallMs) > 2) clockOffsetMs = wallMs - monotonicMs;
  return clockOffsetMs + monotonicMs;
}
