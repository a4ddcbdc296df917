// Exports each flush to an OpenTelemetry collector, in one call or several, whose answers nobody waits for.

import type protobuf from 'protobufjs/minimal.js';
import type { Node, SinkConfig } from '../../../config/generated/api.js';
import { loadMessages } from '../../grpc-sdk.js';
import { atMostMs, type FlushedStats, messageOf, STATS_PER_STEP, type StatsSink } from '../../sdk.js';
import { Condition } from '../condition.js';
import { overCluster, placeOf } from '../service-name.js';
import { ExportRequest } from './export-request.js';
import type { Exporter } from './exporter.js';
import { attribute, Metrics } from './metrics.js';

const METRIC = 'opentelemetry.proto.metrics.v1.Metric';
const RESOURCE = 'opentelemetry.proto.resource.v1.Resource';
const RESPONSE = 'opentelemetry.proto.collector.metrics.v1.ExportMetricsServiceResponse';

/** Exports that the collector may have at once; others wait for their turn. */
const MOST_AT_ONCE = 4;
/** Flushes that are not wholly answered, and bytes of their exports; a flush that finds more is lost. */
const MOST_UNANSWERED = 32;
const MAX_WAITING_BYTES = 16 * 1024 * 1024;
/** How long the last exports may take when the server ends. */
const LAST_MS = 900;

/** One call. */
interface Export {
  readonly pieces: readonly Uint8Array[];
  readonly bytes: number;
  readonly flush: Flush;
}

interface Flush {
  /** Exports without an answer; the flush itself counts as one until all of it is handed over. */
  unanswered: number;
}

export class OpenTelemetrySink implements StatsSink {
  readonly #config: SinkConfig;
  readonly #exporter: Exporter;
  readonly #condition: Condition;
  readonly #metric: protobuf.Type;
  readonly #response: protobuf.Type;
  readonly #resource: Uint8Array;
  readonly #mostPoints: number;
  readonly #waiting: Export[] = [];
  #running = 0;
  #flushes = 0;
  #waitingBytes = 0;
  #isClosed = false;
  /** Called when no flush has exports without an answer. */
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
    this.#mostPoints = config.max_data_points_per_request || Number.POSITIVE_INFINITY;
    this.#exporter = exporter;
  }

  *flush(stats: FlushedStats): Generator<void, void> {
    this.#condition.begin();
    if (this.#flushes >= MOST_UNANSWERED || this.#waitingBytes > MAX_WAITING_BYTES) {
      return this.#condition.fails('it does not answer');
    }
    const flush = { unanswered: 1 };
    this.#flushes++;
    try {
      yield* this.#exportAll(stats, flush);
    } finally {
      this.#answeredOne(flush);
    }
  }

  async close(): Promise<void> {
    if (this.#flushes > 0) await atMostMs(new Promise<void>((resolve) => (this.#allAnswered = resolve)), LAST_MS);
    this.#isClosed = true;
    this.#waiting.length = 0;
    this.#exporter.close();
  }

  *#exportAll(stats: FlushedStats, flush: Flush): Generator<void, void> {
    const metrics = new Metrics(this.#config, stats.times);
    let request = new ExportRequest(this.#metric, this.#resource);
    // A metric of these has one data point.
    const put = (metric: object | undefined) => {
      if (metric === undefined) return;
      request.add(metric);
      if (request.count < this.#mostPoints) return;
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
    while (this.#running < MOST_AT_ONCE && this.#waiting.length > 0) void this.#export(this.#waiting.shift()!);
  }

  async #export({ pieces, bytes, flush }: Export): Promise<void> {
    this.#running++;
    try {
      const answer = await this.#exporter.export(pieces);
      if (answer === undefined) this.#condition.sent();
      else this.#answered(this.#response.toObject(this.#response.decode(answer)));
    } catch (error) {
      if (!this.#isClosed) this.#condition.fails(messageOf(error));
    } finally {
      this.#running--;
      this.#waitingBytes -= bytes;
      this.#answeredOne(flush);
      this.#next();
    }
  }

  #answeredOne(flush: Flush): void {
    if (--flush.unanswered > 0) return;
    this.#flushes--;
    if (this.#flushes === 0) this.#allAnswered?.();
  }

  #answered(response: { readonly [field: string]: unknown }): void {
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

/** Who sends: OpenTelemetry asks for service.name. */
function resourceAttributes({ id = '', cluster = '' }: Node): object[] {
  const attributes = [attribute('service.name', cluster || 'unknown_service:baton')];
  if (id !== '') attributes.push(attribute('service.instance.id', id));
  return attributes;
}
