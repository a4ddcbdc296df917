// The component loggers of one thread. Modules call getLogger(); each thread calls initLogging() once when the options are
// known.
//
// The loggers are children of one pino logger. With fine-grain logging, name and level belong to the file that called
// getLogger(), otherwise to the component.

import { messageOf } from '../common/errors/errors.js';
import { COMPONENTS, type Component } from './components.js';
import { compileJsonLogFormat, type JsonLogFormat } from './json-log-format.js';
import { type ComponentLevel, type LevelRules, levelFor } from './level-rules.js';
import type { Level } from './levels.js';
import { LogDestination, type LogLayout } from './log-destination.js';
import { compileLogFormat, DEFAULT_LOG_FORMAT, type LogFormat, type LogFormatOptions } from './log-format.js';
import type { Logger } from './log-methods.js';
import { LogSink } from './log-sink.js';
import { RootLogger, setLevel } from './root-logger.js';
import { callerOf } from './source-location.js';

export type { Logger } from './log-methods.js';

export interface LoggingOptions extends LogFormatOptions {
  /** Level of all loggers; info by default. */
  level?: Level;
  /** Levels that differ from it, by component. */
  componentLevels?: readonly ComponentLevel[];
  /** File to append to; standard error by default. */
  path?: string;
  /** Layout of lines: a text with flags, or the members of JSON lines; DEFAULT_LOG_FORMAT by default. */
  format?: string | JsonLogFormat;
  /** Loggers per file instead of per component (--enable-fine-grain-logging). */
  fineGrain?: boolean;
  /** Writes a stack trace as one entry (--log-stacktrace-single-entry) instead of one per frame. */
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
interface ComponentLogger extends Logger {
  name: string;
  readonly component: Component;
  /** The file that called getLogger(), relative to the package. */
  readonly file: string;
}

/** Returns this thread's logger for a component and the calling file. Modules call it once, when they are loaded. */
export function getLogger(component: Component): Logger {
  const { file } = callerOf(getLogger);
  const key = `${component} ${file}`;
  let logger = loggers.get(key);
  if (logger === undefined) {
    const name = thread.fineGrain ? file : component;
    logger = root.child({ name, component, file }, levelFor(thread.levels, component, file));
    loggers.set(key, logger);
    thread.onNewLogger?.({ component, file });
  }
  return logger;
}

/**
 * Sets levels, layout and destination of this thread, also for existing loggers. If the file cannot be opened, throws `Failed
 * to open log-file …` and changes nothing.
 */
export function initLogging(options: LoggingOptions): void {
  destination.sink = new LogSink(options.path);
  setLogFormat(options.format ?? DEFAULT_LOG_FORMAT, options);
  thread.fineGrain = options.fineGrain === true;
  for (const logger of loggers.values()) logger.name = thread.fineGrain ? logger.file : logger.component;
  setLevelRules({ level: options.level ?? 'info', components: options.componentLevels ?? [], overrides: [] });
}

/** Replaces the layout, when application_log_config has been read. */
export function setLogFormat(format: string | JsonLogFormat, options: Omit<LoggingOptions, 'format'>): void {
  destination.layout = layoutOf(format, options);
}

/** Returns the levels of this thread's loggers. */
export function levelRules(): LevelRules {
  return thread.levels;
}

/** Sets the levels of all existing and future loggers of this thread. */
export function setLevelRules(rules: LevelRules): void {
  thread.levels = rules;
  for (const logger of loggers.values()) setLevel(logger, levelFor(rules, logger.component, logger.file));
}

/** Returns the files that have a logger in this thread, and calls `onNew` for each file that gets one later. */
export function watchLoggerFiles(onNew: (file: LoggerFile) => void): LoggerFile[] {
  thread.onNewLogger = onNew;
  return [...loggers.values()].map(({ component, file }) => ({ component, file }));
}

/** Adds files that have a logger in another thread to loggerFiles() and loggerStates(). */
export function registerLoggerFiles(files: readonly LoggerFile[]): void {
  for (const file of files) otherFiles.set(`${file.component} ${file.file}`, file);
}

/** Returns the files that have a logger in this thread, and those that were reported for other threads. */
export function loggerFiles(): LoggerFile[] {
  const own = [...loggers.values()].map(({ component, file }) => ({ component, file }));
  return [...own, ...otherFiles.values()];
}

/** Returns whether loggers are per file instead of per component. */
export function isFineGrain(): boolean {
  return thread.fineGrain;
}

/** Returns all loggers with their levels, in display order: components, or files by name with fine-grain logging. */
export function loggerStates(): LoggerState[] {
  const { levels } = thread;
  if (thread.fineGrain) {
    const files = new Map<string, Level>();
    for (const { component, file } of loggerFiles()) files.set(file, levelFor(levels, component, file));
    return [...files].sort(([a], [b]) => (a < b ? -1 : 1)).map(([name, level]) => ({ name, level }));
  }
  return COMPONENTS.map((name) => ({ name, level: levelFor(levels, name, '') }));
}

/** Reopens the file of --log-path. A failure is logged to the file that is still open, and retried until it succeeds. */
export function reopenLog(): void {
  const error = tryToReopen();
  if (error !== undefined) getLogger('file').error(`${messageOf(error)}; retrying`);
}

/** Returns the error, if any. */
function tryToReopen(): unknown {
  clearTimeout(thread.reopening);
  try {
    destination.sink.reopen();
    return undefined;
  } catch (error) {
    thread.reopening = setTimeout(() => {
      if (tryToReopen() === undefined) getLogger('file').info('log file reopened');
    }, REOPEN_RETRY_MS).unref();
    return error;
  }
}

function layoutOf(format: string | JsonLogFormat, options: Omit<LoggingOptions, 'format'>): LogLayout {
  const { singleEntryStacks = false, threadId = () => process.pid } = options;
  return { format: formatOf(format, options), singleEntryStacks, threadId };
}

/** Returns undefined for pino's own records. */
function formatOf(format: string | JsonLogFormat, options: LogFormatOptions): LogFormat | undefined {
  if (typeof format === 'string') return compileLogFormat(format, options);
  return Object.keys(format).length === 0 ? undefined : compileJsonLogFormat(format, options);
}

/** Standard error until initLogging() is called. */
const destination = new LogDestination(new LogSink(undefined), layoutOf(DEFAULT_LOG_FORMAT, {}));
const root = new RootLogger(destination);

/** State that this thread's loggers share. */
const thread = {
  levels: { level: 'info', components: [], overrides: [] } as LevelRules,
  onNewLogger: undefined as ((file: LoggerFile) => void) | undefined,
  fineGrain: false,
  /** Set while the file could not be reopened. */
  reopening: undefined as NodeJS.Timeout | undefined,
};
const loggers = new Map<string, ComponentLogger>();
/** Files of other threads. */
const otherFiles = new Map<string, LoggerFile>();

process.once('exit', () => destination.sink.drain());
