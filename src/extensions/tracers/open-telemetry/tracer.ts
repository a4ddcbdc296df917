// The OpenTelemetry tracer of one worker.

import type { OpenTelemetryConfig } from '../../../config/generated/api.js';
import type { OtlpExporter } from '../../messages/otlp-exporter.js';
import {
  ProtobufWriter,
  type Random,
  releaseNumber,
  type Scope,
  Side,
  type Span,
  type TracedRequest,
  type Tracer,
  type WorkerContext,
} from '../../sdk.js';
import { newSpanId, newTraceId } from '../common/ids.js';
import { NO_SPAN } from '../common/no-span.js';
import { SpanBuffer } from '../common/span-buffer.js';
import { readTraceParent } from '../common/w3c.js';
import { encodeResource, LIBRARY } from './resource.js';
import { createSampler, type Sampler } from './samplers.js';
import { OpenTelemetrySpan, rootPlace, SpanKind, type SpanSink } from './span.js';
import { OpenTelemetryStats, STATS_PREFIX } from './stats.js';

const DEFAULT_MAX_SPANS = 1024;
const DEFAULT_MIN_SPANS = 5;
const DEFAULT_INTERVAL_MS = 5000;

export class OpenTelemetryTracer implements Tracer, SpanSink {
  readonly #random: Random;
  readonly #sampler: Sampler;
  readonly #buffer: SpanBuffer;
  readonly #exporter: OtlpExporter;
  readonly #resource: Uint8Array;
  readonly #scope: Uint8Array | undefined;
  readonly #scopeSpans = new ProtobufWriter();
  readonly #resourceSpans = new ProtobufWriter();
  readonly #request = new ProtobufWriter();

  constructor(config: OpenTelemetryConfig, context: WorkerContext, exporter: OtlpExporter) {
    const { random, runtime, timers } = context;
    const stats: Scope = context.scope(STATS_PREFIX, OpenTelemetryStats);
    const { at } = OpenTelemetryStats;
    this.#random = random;
    this.#sampler = createSampler(config.sampler);
    this.#exporter = exporter;
    this.#resource = encodeResource(config);
    this.#scope = (config.set_instrumentation_scope ?? true) ? encodeScope() : undefined;
    const options = {
      collector: `the OpenTelemetry collector ${exporter.place}`,
      minSpans: runtime.integer('tracing.opentelemetry.min_flush_spans', DEFAULT_MIN_SPANS),
      intervalMs: runtime.integer('tracing.opentelemetry.flush_interval_ms', DEFAULT_INTERVAL_MS),
      maxSpans: config.max_cache_size ?? DEFAULT_MAX_SPANS,
    };
    this.#buffer = new SpanBuffer(timers, options, {
      export: (spans, done) => exporter.export(this.#encode(spans), done),
      sent: (spans) => stats.add(at.spans_sent, spans),
      dropped: (spans) => stats.add(at.spans_dropped, spans),
      timerFlushed: () => stats.increment(at.timer_flushed),
    });
  }

  start({ headers, isTraced, name, side, spawnsTries, startMs }: TracedRequest): Span {
    const parent = readTraceParent(headers);
    if (parent === 'invalid') return NO_SPAN;
    const traceId = parent?.traceId ?? newTraceId(this.#random);
    const place = rootPlace(traceId, parent, isTraced && this.#sampler(traceId, parent));
    // A hop of its own has a span for each side.
    const kind = spawnsTries || side === Side.Ingress ? SpanKind.Server : SpanKind.Client;
    return new OpenTelemetrySpan(this, place, kind, name, startMs);
  }

  newSpanId(): string {
    return newSpanId(this.#random);
  }

  report(span: Uint8Array): void {
    this.#buffer.add(span);
  }

  close(): void {
    this.#buffer.close();
    this.#exporter.close();
  }

  /** Returns an encoded ExportTraceServiceRequest. */
  #encode(spans: readonly Uint8Array[]): Uint8Array {
    const scopeSpans = this.#scopeSpans;
    const resourceSpans = this.#resourceSpans;
    const request = this.#request;
    scopeSpans.clear();
    resourceSpans.clear();
    request.clear();
    if (this.#scope !== undefined) scopeSpans.bytes(1, this.#scope);
    for (const span of spans) scopeSpans.bytes(2, span);
    resourceSpans.bytes(1, this.#resource);
    resourceSpans.message(2, scopeSpans);
    request.message(1, resourceSpans);
    return request.copy();
  }
}

/** Returns an encoded InstrumentationScope. */
function encodeScope(): Uint8Array {
  const scope = new ProtobufWriter();
  scope.string(1, LIBRARY);
  scope.string(2, releaseNumber());
  return scope.copy();
}
