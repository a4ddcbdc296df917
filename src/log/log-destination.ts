// Where pino writes to: each record becomes lines, in the layout that is asked for, and these go to the sink.

import { type DestinationStream, symbols } from 'pino';
import { levelOfNumber } from './levels.js';
import type { LogFormat, LogRecord } from './log-format.js';
import type { LogFields, Logger } from './log-methods.js';
import type { LogSink } from './log-sink.js';
import { callerOf, UNKNOWN_SOURCE } from './source-location.js';
import { StackLimit } from './stack-limit.js';
import { serializeThrown, stackOf } from './thrown.js';
import { wallClockMs } from './wall-clock.js';

/** How records become lines. */
export interface LogLayout {
  /** Undefined: each is a line of JSON as pino writes it. */
  readonly format: LogFormat | undefined;
  /** Stack traces are one entry instead of one a frame; in pino's JSON they always are. */
  readonly singleEntryStacks: boolean;
  readonly threadId: () => number;
}

/** Takes the records of the pino logger that it is given to, and of its children. */
export class LogDestination implements DestinationStream {
  sink: LogSink;
  layout: LogLayout;

  /** Makes pino set the fields that follow before each write(): no layout has to parse JSON. */
  readonly [symbols.needsMetadataGsym] = true;
  lastLevel = 0;
  lastMsg = '';
  lastObj: Partial<LogFields> = NO_FIELDS;
  lastLogger: Logger | undefined;

  readonly #stackLimit = new StackLimit();
  /** Of the record that begins: how many like it have been left out; undefined when it is left out itself. */
  #leftOut: number | undefined = 0;
  readonly #record: LogRecord = { epochMs: 0, level: 'info', logger: '', message: '', source: UNKNOWN_SOURCE };

  constructor(sink: LogSink, layout: LogLayout) {
    this.sink = sink;
    this.layout = layout;
  }

  /** The time of the record that begins: pino's `timestamp`. */
  timestamp(): string {
    this.#record.epochMs = wallClockMs();
    return `,"time":${Math.floor(this.#record.epochMs)}`;
  }

  /** What a record has beside level, time, process, message and `given`: pino's `mixin`. It is called when the record begins. */
  fields(given: Partial<LogFields>, level: number, logger: Logger): object {
    this.#leftOut = 'err' in given ? this.#stackLimit.admit(given.err, performance.now()) : 0;
    const { format, threadId } = this.layout;
    // Another layout takes what it needs.
    if (format !== undefined || this.#leftOut === undefined) return {};
    const { file, line } = sourceOf(logger, level);
    const thread = threadId();
    return {
      name: logger.name,
      thread: thread === process.pid ? undefined : thread,
      caller: `${file}:${line}`,
      // JSON leaves out what is undefined.
      left_out: this.#leftOut || undefined,
    };
  }

  /** What was thrown, in a record's JSON: pino's serializer of `err`. */
  serialize(thrown: unknown): unknown {
    if (this.layout.format !== undefined || this.#leftOut === undefined) return undefined;
    return serializeThrown(thrown);
  }

  /** Called by pino with the record in JSON form. */
  write(json: string): void {
    if (this.#leftOut === undefined) return;
    const { format, singleEntryStacks } = this.layout;
    if (format === undefined) return this.sink.write(json);
    const { lastLevel, lastLogger, lastMsg, lastObj } = this;
    this.lastObj = NO_FIELDS;
    const record = this.#record;
    record.level = levelOfNumber(lastLevel);
    record.logger = lastLogger!.name;
    record.source = format.needsSource ? sourceOf(lastLogger!, lastLevel) : UNKNOWN_SOURCE;
    const isThrown = 'err' in lastObj;
    const text = isThrown ? `${lastMsg}: ${stackOf(lastObj.err)}${this.#othersLeftOut}` : lastMsg;
    for (const entry of isThrown && !singleEntryStacks ? text.split('\n') : [text]) {
      record.message = entry;
      this.sink.write(format.format(record));
    }
  }

  get #othersLeftOut(): string {
    return this.#leftOut === 0 ? '' : `\n${this.#leftOut} more like it were not logged`;
  }
}

const NO_FIELDS = {};

function sourceOf(logger: Logger, level: number) {
  return callerOf(logger[levelOfNumber(level)]);
}
