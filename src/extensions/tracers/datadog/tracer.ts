// The Datadog tracer of one worker.

import { randomUUID } from 'node:crypto';
import type { DatadogConfig } from '../../../config/generated/api.js';
import {
  byteText,
  type Random,
  releaseNumber,
  type Span,
  type TracedRequest,
  type Tracer,
  type WorkerContext,
} from '../../sdk.js';
import { newSpanId } from '../common/ids.js';
import { SpanBuffer } from '../common/span-buffer.js';
import { Agent } from './agent.js';
import { type DatadogContext, HIGH_ID, readDatadog } from './context.js';
import { DatadogStats, STATS_PREFIX } from './stats.js';
import { Trace, type TraceSink } from './trace.js';

const FLUSH_MS = 2000;
const MAX_TRACES = 1000;
/** How a trace was kept: by the rate of the agent. */
const DECISION = '_dd.p.dm';
const BY_AGENT = '-0';
const KNUTH = 1111111111111111111n;
const KEEP = 1;
const DROP = 0;
const USER_DROP = -1;

export class DatadogTracer implements Tracer, TraceSink {
  readonly service: string;
  readonly tags: ReadonlyMap<string, string>;
  readonly #random: Random;
  readonly #agent: Agent;
  readonly #buffer: SpanBuffer;

  constructor(config: DatadogConfig, { calls, random, scope, timers }: WorkerContext) {
    const { collector_cluster: cluster = '', collector_hostname: host, service_name: service = '' } = config;
    const stats = scope(STATS_PREFIX, DatadogStats);
    const { at } = DatadogStats;
    this.service = byteText(service);
    this.#random = random;
    this.tags = new Map([
      ['language', 'nodejs'],
      ['runtime-id', randomUUID()],
      ['version', `baton ${releaseNumber()}`],
    ]);
    this.#agent = new Agent(cluster, byteText(host || cluster), service, calls, {
      sent: () => stats.increment(at.reports_sent),
      dropped: () => stats.increment(at.reports_dropped),
      failed: () => stats.increment(at.reports_failed),
      skipped: () => stats.increment(at.reports_skipped_no_cluster),
    });
    const options = {
      collector: `the Datadog agent in cluster '${cluster}'`,
      minSpans: { value: MAX_TRACES },
      intervalMs: { value: FLUSH_MS },
      maxSpans: MAX_TRACES,
    };
    this.#buffer = new SpanBuffer(timers, options, {
      export: (traces, done) => this.#agent.send(traces, done),
      sent: () => {},
      dropped: (_traces, wasExported) => {
        if (!wasExported) stats.increment(at.reports_dropped);
      },
      timerFlushed: () => {},
    });
  }

  start({ headers, isTraced, name, startMs }: TracedRequest): Span {
    const caller = readDatadog(headers);
    const context = caller ?? this.#newContext(startMs);
    // As in Envoy, the first span has the ID of its trace.
    const spanId = caller === undefined ? context.low : this.newSpanId();
    return this.#traceFor(context, isTraced).open(name, spanId, context.parentId, startMs);
  }

  newSpanId(): string {
    return newSpanId(this.#random);
  }

  report(trace: Uint8Array): void {
    this.#buffer.add(trace);
  }

  close(): void {
    this.#buffer.close();
  }

  #traceFor(context: DatadogContext, isTraced: boolean): Trace {
    if (context.priority !== undefined) return new Trace(this, context, context.priority, undefined);
    if (!isTraced) return new Trace(this, context, USER_DROP, undefined);
    const { rate } = this.#agent;
    if (!isKept(context.low, rate)) return new Trace(this, context, DROP, rate);
    const tags = new Map([...context.tags, [DECISION, BY_AGENT]]);
    return new Trace(this, { ...context, tags }, KEEP, rate);
  }

  /** The upper half of the ID is the time in seconds. */
  #newContext(startMs: number): DatadogContext {
    const high = `${(Math.floor(startMs / 1000) >>> 0).toString(16).padStart(8, '0')}00000000`;
    const tags = new Map([[HIGH_ID, high]]);
    return {
      low: this.newSpanId(),
      high,
      parentId: '',
      priority: undefined,
      origin: '',
      tags,
      unknown: '',
      others: [],
      lastId: '',
    };
  }
}

/** All tracers of Datadog keep the same traces at a rate. */
function isKept(low: string, rate: number): boolean {
  if (rate >= 1) return true;
  return BigInt.asUintN(64, BigInt(`0x${low}`) * KNUTH) <= BigInt(Math.floor(rate * 2 ** 53)) << 11n;
}
