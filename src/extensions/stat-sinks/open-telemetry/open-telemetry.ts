// Exports each flush to an OpenTelemetry collector, in one or several calls. A flush does not wait for their responses.

import type protobuf from 'protobufjs/minimal.js';
import type { Node, SinkConfig } from '../../../config/generated/api.js';
import { loadMessages } from '../../grpc-sdk.js';
import { atMostMs, type FlushedStats, messageOf, releaseNumber, STATS_PER_STEP, type StatsSink } from '../../sdk.js';
import { Condition } from '../condition.js';
import { overCluster, placeOf } from '../service-name.js';
import { ExportRequest } from './export-request.js';
import type { Exporter } from './exporter.js';
import { attribute, Metrics } from './metrics.js';

const METRIC = 'opentelemetry.proto.metrics.v1.Metric';
const RESOURCE = 'opentelemetry.proto.resource.v1.Resource';
const RESPONSE = 'opentelemetry.proto.collector.metrics.v1.ExportMetricsServiceResponse';

/** Maximum concurrent exports. Further ones are queued. */
const MAX_CONCURRENT_EXPORTS = 4;
/** Maximum flushes with unanswered exports, and bytes of those exports. Beyond either limit a flush is dropped. */
const MAX_UNANSWERED_FLUSHES = 32;
const MAX_WAITING_BYTES = 16 * 1024 * 1024;
/** Time for the last exports when the server ends. */
const CLOSE_TIMEOUT_MS = 900;

/** One export call. */
interface Export {
  readonly pieces: readonly Uint8Array[];
  readonly bytes: number;
  readonly flush: Flush;
}

interface Flush {
  /** Unanswered exports, plus one until the whole flush is queued. */
  unanswered: number;
}

export class OpenTelemetrySink implements StatsSink {
  readonly #config: SinkConfig;
  readonly #exporter: Exporter;
  readonly #condition: Condition;
  readonly #metric: protobuf.Type;
  readonly #response: protobuf.Type;
  readonly #resource: Uint8Array;
  readonly #maxPoints: number;
  readonly #waiting: Export[] = [];
  #running = 0;
  #flushes = 0;
  #waitingBytes = 0;
  #isClosed = false;
  /** Called when all exports of all flushes are answered. */
  #allAnswered: (() => void) | undefined;

  constructor(config: SinkConfig, node: Node, exporter: Exporter) {
    const types = loadMessages(METRIC, RESOURCE, RESPONSE);
    this.#config = config;
    const { grpc_service: byGrpc, http_service: byHttp } = config;
    const place = byGrpc === undefined ? overCluster(byHttp?.http_uri?.cluster) : placeOf(byGrpc);
    this.#condition = new Condition(`the OpenTelemetry collector ${place}`);
    this.#metric = types[METRIC];
    this.#response = types[RESPONSE];
    this.#resource = types[RESOURCE].encode({ attributes: resourceAttributes(node) }).finish();
    this.#maxPoints = config.max_data_points_per_request || Number.POSITIVE_INFINITY;
    this.#exporter = exporter;
  }

  *flush(stats: FlushedStats): Generator<void, void> {
    this.#condition.begin();
    if (this.#flushes >= MAX_UNANSWERED_FLUSHES || this.#waitingBytes > MAX_WAITING_BYTES) {
      return this.#condition.fails('it does not answer');
    }
    const flush = { unanswered: 1 };
    this.#flushes++;
    try {
      yield* this.#exportAll(stats, flush);
    } finally {
      this.#settle(flush);
    }
  }

  async close(): Promise<void> {
    if (this.#flushes > 0)
      await atMostMs(new Promise<void>((resolve) => (this.#allAnswered = resolve)), CLOSE_TIMEOUT_MS);
    this.#isClosed = true;
    this.#waiting.length = 0;
    this.#exporter.close();
  }

  *#exportAll(stats: FlushedStats, flush: Flush): Generator<void, void> {
    const metrics = new Metrics(this.#config, stats.times);
    let request = new ExportRequest(this.#metric, this.#resource);
    // Each metric has one data point.
    const put = (metric: object | undefined) => {
      if (metric === undefined) return;
      request.add(metric);
      if (request.count < this.#maxPoints) return;
      this.#send(request.finish(), flush);
      request = new ExportRequest(this.#metric, this.#resource);
    };
    for (const _ of stats.eachValue(STATS_PER_STEP, (stat) => put(metrics.ofValue(stat)))) yield request.seal();
    for (const _ of stats.eachHistogram(STATS_PER_STEP / 8, (stat) => put(metrics.ofHistogram(stat))))
      yield request.seal();
    if (request.count > 0) this.#send(request.finish(), flush);
  }

  #send(pieces: readonly Uint8Array[], flush: Flush): void {
    const bytes = pieces.reduce((sum, piece) => sum + piece.length, 0);
    flush.unanswered++;
    this.#waiting.push({ pieces, bytes, flush });
    this.#waitingBytes += bytes;
    this.#next();
  }

  #next(): void {
    while (this.#running < MAX_CONCURRENT_EXPORTS && this.#waiting.length > 0)
      void this.#export(this.#waiting.shift()!);
  }

  async #export({ pieces, bytes, flush }: Export): Promise<void> {
    this.#running++;
    try {
      const answer = await this.#exporter.export(pieces);
      if (answer === undefined) this.#condition.sent();
      else this.#onResponse(this.#response.toObject(this.#response.decode(answer)));
    } catch (error) {
      if (!this.#isClosed) this.#condition.fails(messageOf(error));
    } finally {
      this.#running--;
      this.#waitingBytes -= bytes;
      this.#settle(flush);
      this.#next();
    }
  }

  #settle(flush: Flush): void {
    if (--flush.unanswered > 0) return;
    this.#flushes--;
    if (this.#flushes === 0) this.#allAnswered?.();
  }

  #onResponse(response: { readonly [field: string]: unknown }): void {
    const rejection = response['partial_success'] as Rejection | undefined;
    const rejected = Number(rejection?.rejected_data_points ?? 0);
    if (rejected === 0) this.#condition.sent();
    else this.#condition.fails(`it rejects metrics: ${rejection?.error_message ?? ''}`);
  }
}

interface Rejection {
  readonly rejected_data_points?: unknown;
  readonly error_message?: string;
}

/** Returns the attributes of this server. OpenTelemetry requires service.name. */
function resourceAttributes({ id = '', cluster = '' }: Node): object[] {
  const attributes = [attribute('service.name', cluster || 'unknown_service:baton')];
  if (id !== '') attributes.push(attribute('service.instance.id', id));
  attributes.push(
    attribute('telemetry.sdk.name', 'baton'),
    attribute('telemetry.sdk.language', 'nodejs'),
    attribute('telemetry.sdk.version', releaseNumber()),
  );
  return attributes;
}
