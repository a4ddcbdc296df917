// Where pino writes to: each record becomes lines, in the layout that is asked for, and these go to the sink.

import { type DestinationStream, symbols } from 'pino';
import { levelOfNumber } from './levels.js';
import type { LogFormat, LogRecord } from './log-format.js';
import type { LogFields, Logger } from './log-methods.js';
import type { LogSink } from './log-sink.js';
import { callerOf, UNKNOWN_SOURCE } from './source-location.js';
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

  /** What a record has beside level, time, process and message: pino's `mixin`. */
  fields(level: number, logger: Logger): object {
    const { format, threadId } = this.layout;
    // Another layout takes what it needs.
    if (format !== undefined) return {};
    const { file, line } = sourceOf(logger, level);
    const thread = threadId();
    return { name: logger.name, thread: thread === process.pid ? undefined : thread, caller: `${file}:${line}` };
  }

  /** What was thrown, in a record's JSON: pino's serializer of `err`. */
  serialize(thrown: unknown): unknown {
    return this.layout.format === undefined ? serializeThrown(thrown) : undefined;
  }

  /** Called by pino with the record in JSON form. */
  write(json: string): void {
    const { format, singleEntryStacks } = this.layout;
    if (format === undefined) return this.sink.write(json);
    const { lastLevel, lastLogger, lastMsg, lastObj } = this;
    this.lastObj = NO_FIELDS;
    const record = this.#record;
    record.level = levelOfNumber(lastLevel);
    record.logger = lastLogger!.name;
    record.source = format.needsSource ? sourceOf(lastLogger!, lastLevel) : UNKNOWN_SOURCE;
    const isThrown = 'err' in lastObj;
    const text = isThrown ? `${lastMsg}: ${stackOf(lastObj.err)}` : lastMsg;
    for (const entry of isThrown && !singleEntryStacks ? text.split('\n') : [text]) {
      record.message = entry;
      this.sink.write(format.format(record));
    }
  }
}

const NO_FIELDS = {};

function sourceOf(logger: Logger, level: number) {
  return callerOf(logger[levelOfNumber(level)]);
}
