// The Zipkin tracer of one worker.

import type { ZipkinConfig } from '../../../config/generated/api.js';
import {
  byteText,
  headerKey,
  type Random,
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
import { type B3Context, readB3 } from './b3.js';
import { createCollector } from './collector.js';
import { jsonEncoding, protobufEncoding, type SpanEncoding } from './encoding.js';
import { type FinishedSpan, type SpanPlace, type SpanSink, ZipkinSpan } from './span.js';
import { STATS_PREFIX, ZipkinStats } from './stats.js';

const HOST = headerKey('host');
const DEFAULT_MIN_SPANS = 5;
const DEFAULT_INTERVAL_MS = 5000;
const DEFAULT_TIMEOUT_MS = 5000;
const MAX_SPANS = 1024;
const ACCEPTED = 202;
const NO_CONTEXT: B3Context = { ids: undefined, isSampled: undefined, isSingle: false };

export class ZipkinTracer implements Tracer, SpanSink {
  readonly propagatesW3c: boolean;
  readonly #random: Random;
  readonly #encoding: SpanEncoding;
  readonly #buffer: SpanBuffer;
  readonly #isShared: boolean;
  readonly #splits: boolean;
  readonly #has128Bits: boolean;
  readonly #timestampsIds: boolean;

  constructor(config: ZipkinConfig, context: WorkerContext) {
    const { identity, random } = context;
    this.#random = random;
    this.propagatesW3c = config.trace_context_option === 'USE_B3_WITH_W3C_PROPAGATION';
    this.#isShared = config.shared_span_context ?? true;
    this.#splits = config.split_spans_for_request ?? false;
    this.#has128Bits = config.trace_id_128bit ?? false;
    this.#timestampsIds = config.timestamp_trace_ids ?? false;
    const endpoint = { service: byteText(identity.cluster), ip: identity.ip };
    const isProtobuf = config.collector_endpoint_version === 'HTTP_PROTO';
    this.#encoding = isProtobuf ? protobufEncoding(endpoint) : jsonEncoding(endpoint);
    this.#buffer = this.#createBuffer(config, context);
  }

  #createBuffer(config: ZipkinConfig, context: WorkerContext): SpanBuffer {
    const { runtime, timers } = context;
    const stats = context.scope(STATS_PREFIX, ZipkinStats);
    const { at } = ZipkinStats;
    const timeoutMs = runtime.integer('tracing.zipkin.request_timeout', DEFAULT_TIMEOUT_MS);
    const collector = createCollector(config, timeoutMs, context.calls);
    const cluster = context.calls.reference(collector.cluster);
    const options = {
      collector: `the Zipkin collector in cluster '${collector.cluster}'`,
      minSpans: runtime.integer('tracing.zipkin.min_flush_spans', DEFAULT_MIN_SPANS),
      intervalMs: runtime.integer('tracing.zipkin.flush_interval_ms', DEFAULT_INTERVAL_MS),
      maxSpans: MAX_SPANS,
    };
    return new SpanBuffer(timers, options, {
      export: (spans, done) => {
        if (cluster.current === undefined) {
          stats.increment(at.reports_skipped_no_cluster);
          return done('the cluster does not exist');
        }
        collector.post(this.#encoding.contentType, this.#encoding.join(spans), {
          onAnswer: ({ status }) => {
            stats.increment(status === ACCEPTED ? at.reports_sent : at.reports_dropped);
            done(status === ACCEPTED ? '' : `it has answered with status ${status}`);
          },
          onFailure: (reason) => {
            stats.increment(at.reports_failed);
            done(reason);
          },
        });
      },
      sent: (spans) => stats.add(at.spans_sent, spans),
      dropped: (_spans, wasExported) => {
        if (!wasExported) stats.increment(at.reports_dropped);
      },
      timerFlushed: () => stats.increment(at.timer_flushed),
    });
  }

  start({ headers, isTraced, side, spawnsTries, startMs }: TracedRequest): Span {
    const context = this.#contextOf(headers);
    if (context === 'invalid') return NO_SPAN;
    // A hop of its own has a span for each side.
    const isServer = spawnsTries || this.#splits || side === Side.Ingress;
    const place = this.#placeFor(context, isServer, context.isSampled ?? isTraced, startMs);
    return new ZipkinSpan(this, place, headers.get(HOST) ?? '', startMs);
  }

  newSpanId(): string {
    return newSpanId(this.#random);
  }

  report(span: FinishedSpan): void {
    this.#buffer.add(this.#encoding.encode(span));
  }

  close(): void {
    this.#buffer.close();
  }

  #contextOf(headers: TracedRequest['headers']): B3Context | 'invalid' {
    const b3 = readB3(headers);
    if (b3 !== undefined || !this.propagatesW3c) return b3 ?? NO_CONTEXT;
    const parent = readTraceParent(headers);
    if (parent === undefined || parent === 'invalid') return NO_CONTEXT;
    const { isSampled, spanId, traceId } = parent;
    return { ids: { traceId, spanId, parentId: '' }, isSampled, isSingle: false };
  }

  #placeFor({ ids, isSingle }: B3Context, isServer: boolean, isSampled: boolean, startMs: number): SpanPlace {
    const isShared = isServer && this.#isShared;
    const common = { kind: isServer ? 'SERVER' : 'CLIENT', isShared, isSampled, isSingle } as const;
    if (ids === undefined) return { ...common, ...this.#newIds(startMs), parentId: '' };
    if (isShared) return { ...common, ...ids };
    return { ...common, traceId: ids.traceId, spanId: this.newSpanId(), parentId: ids.spanId };
  }

  /** As in Envoy, the first span has the ID of its trace, or the second half of that. */
  #newIds(startMs: number): { traceId: string; spanId: string } {
    const spanId = this.newSpanId();
    const time = this.#timestampsIds ? secondsOf(startMs) : '';
    if (this.#has128Bits) {
      const high = this.newSpanId();
      return { traceId: time + high.slice(time.length) + spanId, spanId };
    }
    if (time === '') return { traceId: spanId, spanId };
    return { traceId: time + newTraceId(this.#random).slice(0, time.length), spanId };
  }
}

/** Returns the seconds since 1970 as 8 hexadecimal digits, for the beginning of IDs that sort by time. */
function secondsOf(ms: number): string {
  return (Math.floor(ms / 1000) >>> 0).toString(16).padStart(8, '0');
}
