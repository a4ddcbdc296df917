// The metrics service's sink: one stream, opened by the first flush and kept open. After it broke, the next flush opens another.

import protobuf from 'protobufjs/minimal.js';
import type { MetricsServiceConfig } from '../../../config/generated/api.js';
import { encodeJson, type GrpcCall, GrpcChannel, GrpcCode, loadMessages } from '../../grpc-sdk.js';
import {
  atMostMs,
  durationMs,
  type FlushedStat,
  type FlushedStats,
  type PrimaryContext,
  STATS_PER_STEP,
  type StatsSink,
} from '../../sdk.js';
import { Condition } from '../condition.js';
import { placeOf } from '../service-name.js';
import { Families, type MetricFamily } from './families.js';

const METHOD = '/envoy.service.metrics.v3.MetricsService/StreamMetrics';
const FAMILY = 'io.prometheus.client.MetricFamily';
const NODE = 'envoy.config.core.v3.Node';

/** Maximum unsent bytes. Beyond that the stream is abandoned. */
const MAX_WAITING_BYTES = 16 * 1024 * 1024;
/** What a server accepts before it has answered to HTTP/2. */
const FIRST_WINDOW_BYTES = 65_535;
/** Time for sending queued messages when the server ends. */
const CLOSE_TIMEOUT_MS = 300;
/** Field tags of StreamMetricsMessage: identifier, envoy_metrics; and of Identifier: node. */
const IDENTIFIER_TAG = 10;
const METRICS_TAG = 18;
const NODE_TAG = 10;

export class MetricsServiceSink implements StatsSink {
  readonly #channel: GrpcChannel;
  readonly #families: Families;
  readonly #batchSize: number;
  readonly #condition: Condition;
  readonly #family;
  readonly #node: Uint8Array;
  #stream: GrpcCall | undefined;
  #isClosed = false;
  #isFirst = true;
  /** Bytes that the stream had sent at the last flush, and since when it has sent no more. */
  #sentBytes = 0;
  #stalledSinceMs = 0;
  /** Called when all queued messages were sent. */
  #drained: (() => void) | undefined;
  readonly #timeoutMs: number;

  constructor(config: MetricsServiceConfig, context: PrimaryContext) {
    const types = loadMessages(FAMILY, NODE);
    this.#family = types[FAMILY];
    this.#node = encodeJson(types[NODE], context.node);
    this.#channel = new GrpcChannel(config.grpc_service!, context.calls);
    this.#families = new Families(config);
    this.#batchSize = config.batch_size || Number.POSITIVE_INFINITY;
    const { timeout } = config.grpc_service!;
    this.#timeoutMs = durationMs(timeout, Number.POSITIVE_INFINITY);
    this.#condition = new Condition(`the metrics service ${placeOf(config.grpc_service!)}`);
  }

  *flush(stats: FlushedStats): Generator<void, void> {
    this.#condition.begin();
    this.#stream ??= this.#open();
    if (this.#isStalled()) return this.#abandon('it accepted nothing for the timeout of the service');
    const message = new Message(this.#family, this.#batchSize, (bytes) => this.#send(bytes));
    const { nowMs } = stats.times;
    for (const _ of stats.eachValue(STATS_PER_STEP, (stat) => message.add(this.#families.ofValue(stat, nowMs)))) {
      yield message.seal();
    }
    const addHistogram = (stat: FlushedStat) => {
      for (const family of this.#families.ofHistogram(stat, nowMs)) message.add(family);
    };
    for (const _ of stats.eachHistogram(STATS_PER_STEP / 8, addHistogram)) yield message.seal();
    message.end();
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    const stream = this.#stream;
    if (stream !== undefined) {
      stream.end();
      const drained = new Promise<void>((resolve) => {
        this.#drained = resolve;
      });
      if (stream.queuedBytes > 0) await atMostMs(drained, CLOSE_TIMEOUT_MS);
      // The service may never answer.
      stream.cancel();
    }
    this.#channel.close();
  }

  /** Opens a stream; undefined if that fails at once. Messages written before it is connected are queued. */
  #open(): GrpcCall | undefined {
    const stream: GrpcCall | undefined = this.#channel.stream(METHOD, {
      onMessage: () => {},
      onDrained: () => {
        // Anything that accepts a connection accepts as much as this.
        if (stream !== undefined && stream.sentBytes > FIRST_WINDOW_BYTES) this.#condition.sent();
        this.#drained?.();
      },
      onEnd: ({ code, details }) => {
        const lost = this.#waiting;
        this.#stream = undefined;
        if (!this.#isClosed) this.#condition.fails(code === GrpcCode.Ok ? 'it ended the stream' : details, lost);
        this.#drained?.();
      },
    });
    this.#isFirst = true;
    return stream;
  }

  /** Messages that were not sent. */
  get #waiting(): number {
    return this.#stream?.queuedParts ?? 0;
  }

  /** Returns whether the service has accepted nothing for its timeout. */
  #isStalled(): boolean {
    const { queuedBytes = 0, sentBytes = 0 } = this.#stream ?? {};
    const now = performance.now();
    if (queuedBytes === 0 || sentBytes !== this.#sentBytes) {
      this.#sentBytes = sentBytes;
      this.#stalledSinceMs = now;
    }
    return now - this.#stalledSinceMs > this.#timeoutMs;
  }

  #send(metrics: Uint8Array): void {
    const stream = this.#stream;
    if (stream === undefined) return this.#condition.fails('there is no connection');
    const bytes = this.#isFirst ? Buffer.concat([this.#identifier(), metrics]) : metrics;
    if (stream.queuedBytes + bytes.length > MAX_WAITING_BYTES && stream.queuedBytes > 0)
      return this.#abandon('it does not read');
    this.#isFirst = false;
    stream.write(bytes);
  }

  #identifier(): Uint8Array {
    const writer = protobuf.Writer.create();
    return writer.uint32(IDENTIFIER_TAG).fork().uint32(NODE_TAG).bytes(this.#node).ldelim().finish();
  }

  /** Abandons the stream. The queued messages are lost, and the one that would be next. */
  #abandon(reason: string): void {
    const lost = this.#waiting + 1;
    this.#stream?.cancel();
    this.#stream = undefined;
    this.#condition.fails(reason, lost);
  }
}

/** Encodes metric families to StreamMetricsMessages as they are added. Holds only encoded bytes. */
class Message {
  readonly #family: protobuf.Type;
  readonly #batchSize: number;
  readonly #send: (bytes: Uint8Array) => void;
  #writer = protobuf.Writer.create();
  #pieces: Uint8Array[] = [];
  #count = 0;

  constructor(family: protobuf.Type, batchSize: number, send: (bytes: Uint8Array) => void) {
    this.#family = family;
    this.#batchSize = batchSize;
    this.#send = send;
  }

  add(family: MetricFamily): void {
    this.#family.encode(family, this.#writer.uint32(METRICS_TAG).fork()).ldelim();
    if (++this.#count >= this.#batchSize) this.end();
  }

  /** Encodes the families added since the last call, so that end() has little to do. */
  seal(): void {
    if (this.#writer.len === 0) return;
    this.#pieces.push(this.#writer.finish());
    this.#writer = protobuf.Writer.create();
  }

  end(): void {
    if (this.#count === 0) return;
    this.seal();
    this.#send(Buffer.concat(this.#pieces));
    this.#pieces = [];
    this.#count = 0;
  }
}
