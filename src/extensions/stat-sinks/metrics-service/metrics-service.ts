// The metrics service's sink: one stream, opened by the first flush and kept open. After it broke, the next flush opens another.

import type { ClientWritableStream } from '@grpc/grpc-js';
import protobuf from 'protobufjs/minimal.js';
import type { MetricsServiceConfig } from '../../../config/generated/api.js';
import { encodeJson, GrpcChannel, loadMessages } from '../../grpc-sdk.js';
import {
  atMostMs,
  durationMs,
  type FlushedStat,
  type FlushedStats,
  messageOf,
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
  #stream: ClientWritableStream<Uint8Array> | undefined;
  #isClosed = false;
  #isFirst = true;
  #waitingBytes = 0;
  #waitingMessages = 0;
  /** When the stream last accepted a queued message. */
  #stalledSinceMs = 0;
  readonly #timeoutMs: number;

  constructor(config: MetricsServiceConfig, context: PrimaryContext) {
    const types = loadMessages(FAMILY, NODE);
    this.#family = types[FAMILY];
    this.#node = encodeJson(types[NODE], context.node);
    this.#channel = new GrpcChannel(config.grpc_service!, context.hosts);
    this.#families = new Families(config);
    this.#batchSize = config.batch_size || Number.POSITIVE_INFINITY;
    const { timeout } = config.grpc_service!;
    this.#timeoutMs = durationMs(timeout, Number.POSITIVE_INFINITY);
    this.#condition = new Condition(`the metrics service ${placeOf(config.grpc_service!)}`);
  }

  *flush(stats: FlushedStats): Generator<void, void> {
    this.#condition.begin();
    this.#stream ??= this.#open();
    if (this.#waitingBytes > 0 && performance.now() - this.#stalledSinceMs > this.#timeoutMs) {
      return this.#abandon(this.#stream, 'it accepted nothing for the timeout of the service', 1);
    }
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
      const finished = new Promise<void>((resolve) => void stream.once('finish', resolve));
      stream.end();
      await atMostMs(finished, CLOSE_TIMEOUT_MS);
      // The service may never answer.
      stream.cancel();
    }
    this.#channel.close();
  }

  /** Opens a stream. Messages sent before the connection is established are queued. */
  #open(): ClientWritableStream<Uint8Array> {
    const stream = this.#channel.clientStream(METHOD, (error) => {
      this.#lose(stream, error === null ? 'it ended the stream' : error.message);
    });
    // The callback above reports the error.
    stream.on('error', () => {});
    this.#channel.ready().catch((error: unknown) => this.#abandon(stream, messageOf(error)));
    this.#isFirst = true;
    this.#waitingBytes = 0;
    this.#waitingMessages = 0;
    return stream;
  }

  #send(metrics: Uint8Array): void {
    const stream = this.#stream;
    if (stream === undefined) return this.#condition.fails('there is no connection');
    const bytes = this.#isFirst ? Buffer.concat([this.#identifier(), metrics]) : metrics;
    if (this.#waitingBytes + bytes.length > MAX_WAITING_BYTES && this.#waitingBytes > 0) {
      return this.#abandon(stream, 'it does not read', 1);
    }
    if (this.#waitingBytes === 0) this.#stalledSinceMs = performance.now();
    this.#isFirst = false;
    this.#waitingBytes += bytes.length;
    this.#waitingMessages++;
    stream.write(bytes, () => {
      if (stream !== this.#stream) return;
      this.#waitingBytes -= bytes.length;
      this.#waitingMessages--;
      this.#stalledSinceMs = performance.now();
      this.#condition.sent();
    });
  }

  #identifier(): Uint8Array {
    const writer = protobuf.Writer.create();
    return writer.uint32(IDENTIFIER_TAG).fork().uint32(NODE_TAG).bytes(this.#node).ldelim().finish();
  }

  /** Abandons the stream. `unsent`: lost messages in addition to the queued ones. */
  #abandon(stream: ClientWritableStream<Uint8Array>, reason: string, unsent = 0): void {
    if (this.#stream !== stream) return;
    this.#lose(stream, reason, unsent);
    stream.cancel();
  }

  #lose(stream: ClientWritableStream<Uint8Array>, reason: string, unsent = 0): void {
    if (this.#stream !== stream) return;
    this.#stream = undefined;
    if (!this.#isClosed) this.#condition.fails(reason, this.#waitingMessages + unsent);
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
