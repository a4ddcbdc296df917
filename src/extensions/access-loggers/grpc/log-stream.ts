// The stream of log entries from one worker to an access log service. Loggers with the same configuration share it. Entries are
// collected and sent together; after the stream broke, the next flush opens another one.

import type { CommonGrpcAccessLogConfig } from '../../../config/generated/api.js';
import {
  encodeJson,
  type GrpcCallEvents,
  GrpcChannel,
  GrpcCode,
  type GrpcStream,
  loadMessages,
} from '../../grpc-sdk.js';
import {
  compileCallRetries,
  durationMs,
  getLogger,
  ProtobufWriter,
  type RetryPolicy,
  type Scope,
  Timer,
  type WorkerContext,
} from '../../sdk.js';
import { GrpcLogStats, STATS_PREFIX } from './stats.js';

const METHOD = '/envoy.service.accesslog.v3.AccessLogService/StreamAccessLogs';
const NODE = 'envoy.config.core.v3.Node';
const DEFAULT_FLUSH_MS = 1000;
const DEFAULT_BUFFER_BYTES = 16_384;
/** Bytes that the service has not read, beyond which nothing is sent. */
const MAX_QUEUED_BYTES = 1024 * 1024;
/** Limit of entries that cannot be sent, where buffer_size_bytes sets none: for HTTP it does unless it is 0. */
const MAX_HELD_BYTES = 1024 * 1024;

/** The path of the policy, and its conditions: as in Envoy, those in the configuration do not count. */
export const RETRY_POLICY = 'common_config.grpc_stream_retry_policy';
export const RETRY_ON = 'connect-failure';

/** How long the service may take for the last entries. */
const CLOSE_MS = 5000;

/** The field of StreamAccessLogsMessage that holds the entries. */
export const enum LogKind {
  Http = 2,
  Tcp = 3,
}

const logger = getLogger('grpc');

export class LogStream {
  readonly #kind: LogKind;
  readonly #context: WorkerContext;
  readonly #channel: GrpcChannel;
  /** Undefined: the retries of the service apply. */
  readonly #retries: RetryPolicy | undefined;
  readonly #stats: Scope;
  readonly #logName: string;
  readonly #flushMs: number;
  readonly #bufferBytes: number;
  /** While entries are collected: the flush. After close(): the end of the stream. */
  readonly #timer = new Timer<LogStream>(this, (stream) => stream.#onTimer());
  #isTimed = false;
  #isClosed = false;
  #entries: Uint8Array[] = [];
  #bytes = 0;
  #call: GrpcStream | undefined;
  #isFirst = true;
  /** The last logged reason for a lost stream. */
  #lastFailure = '';

  constructor(kind: LogKind, config: CommonGrpcAccessLogConfig, context: WorkerContext) {
    this.#kind = kind;
    this.#context = context;
    this.#channel = new GrpcChannel(config.grpc_service!, context.calls);
    this.#retries = compileCallRetries(config.grpc_stream_retry_policy, RETRY_POLICY, RETRY_ON);
    this.#stats = context.scope(STATS_PREFIX, GrpcLogStats);
    this.#logName = config.log_name!;
    this.#flushMs = durationMs(config.buffer_flush_interval, DEFAULT_FLUSH_MS);
    this.#bufferBytes = config.buffer_size_bytes ?? DEFAULT_BUFFER_BYTES;
  }

  /** Adds an encoded entry, or drops it if the service does not accept earlier ones. */
  add(entry: Uint8Array): void {
    if (!this.#hasRoom()) return this.#stats.increment(GrpcLogStats.at.logs_dropped);
    // As in Envoy, those of TCP are not counted.
    if (this.#kind === LogKind.Http) this.#stats.increment(GrpcLogStats.at.logs_written);
    this.#entries.push(entry);
    this.#bytes += entry.length;
    if (this.#bytes >= this.#bufferBytes) this.flush();
    else this.#flushSoon();
  }

  /** Sends the collected entries. They stay if they cannot be sent now. */
  flush(): void {
    const count = this.#entries.length;
    if (count === 0) return;
    const { at } = GrpcLogStats;
    const isSent = this.#send();
    this.#stats.add(isSent ? at.grpc_entries_flushed : at.grpc_entries_flush_failed, count);
    if (!isSent) return this.#flushSoon();
    this.#entries = [];
    this.#bytes = 0;
  }

  /** Sends the rest, and ends the stream. */
  close(): void {
    this.flush();
    this.#isClosed = true;
    this.#channel.close();
    this.#call?.end();
    // The service may never answer.
    this.#context.timers.reschedule(this.#timer, CLOSE_MS);
  }

  #hasRoom(): boolean {
    const isLimited = this.#kind === LogKind.Http && this.#bufferBytes > 0;
    const limit = isLimited ? this.#bufferBytes : Math.max(this.#bufferBytes, MAX_HELD_BYTES);
    if (this.#bytes < limit) return true;
    this.flush();
    return this.#bytes < limit;
  }

  #flushSoon(): void {
    if (this.#isTimed || this.#isClosed) return;
    this.#isTimed = true;
    this.#context.timers.reschedule(this.#timer, this.#flushMs);
  }

  #onTimer(): void {
    this.#isTimed = false;
    if (!this.#isClosed) return this.flush();
    this.#call?.cancel();
    this.#call = undefined;
  }

  #send(): boolean {
    if (this.#call !== undefined && this.#call.queuedBytes > MAX_QUEUED_BYTES) return false;
    this.#call ??= this.#open();
    if (this.#call === undefined) return false;
    this.#call.write(this.#message());
    return true;
  }

  #open(): GrpcStream | undefined {
    this.#isFirst = true;
    const events: GrpcCallEvents = {
      onConnected: () => {
        this.#lastFailure = '';
      },
      onMessage: () => {},
      onEnd: ({ code, details }) => {
        this.#call = undefined;
        const reason = code === GrpcCode.Ok ? 'it has ended the stream' : `${code}, ${details}`;
        if (reason !== this.#lastFailure) logger.warning(`access log service of '${this.#logName}': ${reason}`);
        this.#lastFailure = reason;
      },
    };
    return this.#channel.retriedStream(METHOD, events, undefined, this.#retries);
  }

  /** Returns an encoded StreamAccessLogsMessage. The first one of a stream says who sends it. */
  #message(): Uint8Array {
    const entries = new ProtobufWriter();
    for (const entry of this.#entries) entries.bytes(1, entry);
    const message = new ProtobufWriter();
    if (this.#isFirst) {
      const identifier = new ProtobufWriter();
      identifier.bytes(1, encodedNode(this.#context));
      identifier.string(2, this.#logName);
      message.message(1, identifier);
      this.#isFirst = false;
    }
    message.message(this.#kind, entries);
    return message.copy();
  }
}

const nodes = new WeakMap<WorkerContext, Uint8Array>();

function encodedNode(context: WorkerContext): Uint8Array {
  let node = nodes.get(context);
  if (node === undefined) nodes.set(context, (node = encodeJson(loadMessages(NODE)[NODE], context.node)));
  return node;
}

/** The streams of a worker, by kind and configuration. */
const streams = new WeakMap<WorkerContext, Map<string, { readonly stream: LogStream; users: number }>>();

/** Returns the stream of a configuration, and a function to call when it is no longer used. */
export function shareStream(
  kind: LogKind,
  config: CommonGrpcAccessLogConfig,
  context: WorkerContext,
): readonly [stream: LogStream, release: () => void] {
  const key = `${kind} ${JSON.stringify(config)}`;
  const ofWorker = streams.get(context) ?? new Map<string, { readonly stream: LogStream; users: number }>();
  streams.set(context, ofWorker);
  const shared = ofWorker.get(key) ?? { stream: new LogStream(kind, config, context), users: 0 };
  ofWorker.set(key, shared);
  shared.users++;
  const release = () => {
    if (--shared.users > 0) return;
    ofWorker.delete(key);
    shared.stream.close();
  };
  return [shared.stream, release];
}
