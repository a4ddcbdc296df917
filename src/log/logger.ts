// Component loggers of one thread: getLogger() anywhere, initLogging() once a thread when the options are known.
//
// They are children of one pino logger. With fine-grain logging name and level belong to the file that called getLogger(),
// otherwise to the component.

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
  /** File to append to; standard error without one. */
  path?: string;
  /** Layout of lines: a text with flags, or members of lines in JSON form; DEFAULT_LOG_FORMAT by default. */
  format?: string | JsonLogFormat;
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
interface ComponentLogger extends Logger {
  name: string;
  readonly component: Component;
  /** The file that asked for this logger, below the package. */
  readonly file: string;
}

/** This thread's logger for a component and the calling file: asked for once, when a module is loaded. */
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
 * Sets this thread's levels, layout and destination, also for loggers that exist already. Throws
 * `Failed to open log-file …` and leaves everything as it was when the file cannot be opened.
 */
export function initLogging(options: LoggingOptions): void {
  destination.sink = new LogSink(options.path);
  setLogFormat(options.format ?? DEFAULT_LOG_FORMAT, options);
  thread.fineGrain = options.fineGrain === true;
  for (const logger of loggers.values()) logger.name = thread.fineGrain ? logger.file : logger.component;
  setLevelRules({ level: options.level ?? 'info', components: options.componentLevels ?? [], overrides: [] });
}

/** Replaces the layout (application_log_config, which is known later than the options). */
export function setLogFormat(format: string | JsonLogFormat, options: Omit<LoggingOptions, 'format'>): void {
  destination.layout = layoutOf(format, options);
}

/** The levels of this thread's loggers. */
export function levelRules(): LevelRules {
  return thread.levels;
}

/** Gives all loggers of this thread, those to come included, their levels. */
export function setLevelRules(rules: LevelRules): void {
  thread.levels = rules;
  for (const logger of loggers.values()) setLevel(logger, levelFor(rules, logger.component, logger.file));
}

/** Files that have a logger in this thread. `onNew` is called with each that gets one later. */
export function watchLoggerFiles(onNew: (file: LoggerFile) => void): LoggerFile[] {
  thread.onNewLogger = onNew;
  return [...loggers.values()].map(({ component, file }) => ({ component, file }));
}

/** Files that have a logger in another thread: loggerFiles() and loggerStates() name them too. */
export function noteLoggerFiles(files: readonly LoggerFile[]): void {
  for (const file of files) otherFiles.set(`${file.component} ${file.file}`, file);
}

/** Files that have a logger in this thread or in another one that is known of. */
export function loggerFiles(): LoggerFile[] {
  const own = [...loggers.values()].map(({ component, file }) => ({ component, file }));
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
    destination.sink.reopen();
    return undefined;
  } catch (error) {
    thread.reopening = setTimeout(() => {
      if (tryToReopen() === undefined) getLogger('file').info('the log file is open anew');
    }, REOPEN_RETRY_MS).unref();
    return error;
  }
}

function layoutOf(format: string | JsonLogFormat, options: Omit<LoggingOptions, 'format'>): LogLayout {
  const { singleEntryStacks = false, threadId = () => process.pid } = options;
  return { format: formatOf(format, options), singleEntryStacks, threadId };
}

/** Undefined where pino's own records are asked for. */
function formatOf(format: string | JsonLogFormat, options: LogFormatOptions): LogFormat | undefined {
  if (typeof format === 'string') return compileLogFormat(format, options);
  return Object.keys(format).length === 0 ? undefined : compileJsonLogFormat(format, options);
}

/** Standard error until initLogging() says otherwise. */
const destination = new LogDestination(new LogSink(undefined), layoutOf(DEFAULT_LOG_FORMAT, {}));
const root = new RootLogger(destination);

/** All that this thread's loggers share. */
const thread = {
  levels: { level: 'info', components: [], overrides: [] } as LevelRules,
  onNewLogger: undefined as ((file: LoggerFile) => void) | undefined,
  fineGrain: false,
  /** Set while the file could not be opened anew. */
  reopening: undefined as NodeJS.Timeout | undefined,
};
const loggers = new Map<string, ComponentLogger>();
/** Of other threads. */
const otherFiles = new Map<string, LoggerFile>();

process.once('exit', () => destination.sink.drain());
