// The destination of pino: formats each record as lines and writes them to the sink.

import { type DestinationStream, symbols } from 'pino';
import { levelOfNumber } from './levels.js';
import type { LogFormat, LogRecord } from './log-format.js';
import type { LogFields, Logger } from './log-methods.js';
import type { LogSink } from './log-sink.js';
import { callerOf, UNKNOWN_SOURCE } from './source-location.js';
import { StackLimit } from './stack-limit.js';
import { serializeThrown, stackOf } from './thrown.js';
import { wallClockMs } from './wall-clock.js';

/** Defines how records become lines. */
export interface LogLayout {
  /** Undefined: each record is a line of JSON as pino writes it. */
  readonly format: LogFormat | undefined;
  /** Writes a stack trace as one entry instead of one per frame; in pino's JSON it always is one. */
  readonly singleEntryStacks: boolean;
  readonly threadId: () => number;
}

/** Receives the records of one pino logger and its children. */
export class LogDestination implements DestinationStream {
  sink: LogSink;
  layout: LogLayout;

  /** Makes pino set the following fields before each write(), so that no layout has to parse JSON. */
  readonly [symbols.needsMetadataGsym] = true;
  lastLevel = 0;
  lastMsg = '';
  lastObj: Partial<LogFields> = NO_FIELDS;
  lastLogger: Logger | undefined;

  readonly #stackLimit = new StackLimit();
  /**
   * For the current record: the number of similar records that were suppressed before it; undefined if it is suppressed itself.
   */
  #suppressed: number | undefined = 0;
  readonly #record: LogRecord = { epochMs: 0, level: 'info', logger: '', message: '', source: UNKNOWN_SOURCE };

  constructor(sink: LogSink, layout: LogLayout) {
    this.sink = sink;
    this.layout = layout;
  }

  /** Returns the time of a new record: pino's `timestamp`. */
  timestamp(): string {
    this.#record.epochMs = wallClockMs();
    return `,"time":${Math.floor(this.#record.epochMs)}`;
  }

  /** Returns the fields of a new record besides level, time, process, message and `given`: pino's `mixin`. */
  fields(given: Partial<LogFields>, level: number, logger: Logger): object {
    this.#suppressed = 'err' in given ? this.#stackLimit.admit(given.err, performance.now()) : 0;
    const { format, threadId } = this.layout;
    // Other layouts read what they need in write().
    if (format !== undefined || this.#suppressed === undefined) return {};
    const { file, line } = sourceOf(logger, level);
    const thread = threadId();
    return {
      name: logger.name,
      thread: thread === process.pid ? undefined : thread,
      caller: `${file}:${line}`,
      // JSON omits undefined members.
      left_out: this.#suppressed || undefined,
    };
  }

  /** Returns an exception in the form of a record's JSON: pino's serializer of `err`. */
  serialize(thrown: unknown): unknown {
    if (this.layout.format !== undefined || this.#suppressed === undefined) return undefined;
    return serializeThrown(thrown);
  }

  /** Called by pino with the record as JSON. */
  write(json: string): void {
    if (this.#suppressed === undefined) return;
    const { format, singleEntryStacks } = this.layout;
    if (format === undefined) return this.sink.write(json);
    const { lastLevel, lastLogger, lastMsg, lastObj } = this;
    this.lastObj = NO_FIELDS;
    const record = this.#record;
    record.level = levelOfNumber(lastLevel);
    record.logger = lastLogger!.name;
    record.source = format.needsSource ? sourceOf(lastLogger!, lastLevel) : UNKNOWN_SOURCE;
    const isThrown = 'err' in lastObj;
    const text = isThrown ? `${lastMsg}: ${stackOf(lastObj.err)}${this.#suppressionNote}` : lastMsg;
    for (const entry of isThrown && !singleEntryStacks ? text.split('\n') : [text]) {
      record.message = entry;
      this.sink.write(format.format(record));
    }
  }

  get #suppressionNote(): string {
    return this.#suppressed === 0 ? '' : `\n${this.#suppressed} similar errors were not logged`;
  }
}

const NO_FIELDS = {};

function sourceOf(logger: Logger, level: number) {
  return callerOf(logger[levelOfNumber(level)]);
}
