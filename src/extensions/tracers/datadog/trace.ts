// The part of a trace that this server makes, in Datadog's form: the span of a request, and those of its tries.

import type { HeaderBlock, Span, TagValue } from '../../sdk.js';
import { type DatadogContext, decimalOf, HIGH_ID, writeDatadog } from './context.js';
import { MsgpackWriter } from './msgpack.js';

const NAME = 'envoy.proxy';
const TYPE = 'web';
const FIELDS = 12;

/** What the traces of a tracer share. Texts have one character per byte. */
export interface TraceSink {
  readonly service: string;
  /** Tags of every span. */
  readonly tags: ReadonlyMap<string, string>;
  newSpanId(): string;
  report(trace: Uint8Array): void;
}

export class Trace {
  readonly context: DatadogContext;
  readonly priority: number;
  /** The agent's rate that has decided; undefined: the caller or the connection manager has. */
  readonly agentRate: number | undefined;
  readonly sink: TraceSink;
  readonly #spans: DatadogSpan[] = [];

  constructor(sink: TraceSink, context: DatadogContext, priority: number, agentRate: number | undefined) {
    this.sink = sink;
    this.context = context;
    this.priority = priority;
    this.agentRate = agentRate;
  }

  open(name: string, id: string, parentId: string, startMs: number): DatadogSpan {
    const span = new DatadogSpan(this, name, id, parentId, startMs, this.#spans.length === 0);
    this.#spans.push(span);
    return span;
  }

  report(): void {
    const writer = new MsgpackWriter();
    writer.array(this.#spans.length);
    for (const span of this.#spans) span.write(writer);
    this.sink.report(writer.finish());
  }
}

class DatadogSpan implements Span {
  /** The agent gets the spans of dropped traces too. */
  isSampled = true;
  readonly spanId: string;
  readonly #trace: Trace;
  readonly #parentId: string;
  readonly #startMs: number;
  readonly #isRoot: boolean;
  readonly #tags = new Map<string, string>();
  #name: string;
  #endMs: number;
  #isError = false;

  constructor(trace: Trace, name: string, id: string, parentId: string, startMs: number, isRoot: boolean) {
    this.#trace = trace;
    this.#name = name;
    this.spanId = id;
    this.#parentId = parentId;
    this.#startMs = this.#endMs = startMs;
    this.#isRoot = isRoot;
  }

  get traceId(): string {
    const { high, low } = this.#trace.context;
    return high.padStart(16, '0') + low;
  }

  setOperation(name: string): void {
    this.#name = name;
  }

  setTag(name: string, value: TagValue): void {
    if (name === 'error') {
      this.#isError = value !== 'false';
      return;
    }
    this.#tags.set(name, String(value));
    if (name !== 'error.reason') return;
    this.#isError = true;
    this.#tags.set('error.message', String(value));
  }

  /** Datadog's spans have no events. */
  log(): void {}

  inject(headers: HeaderBlock): void {
    writeDatadog(headers, this.#trace.context, this.spanId, this.#trace.priority);
  }

  child(name: string, startMs: number): Span {
    return this.#trace.open(name, this.#trace.sink.newSpanId(), this.spanId, startMs);
  }

  drop(): void {
    this.isSampled = false;
  }

  finish(endMs: number): void {
    this.#endMs = Math.max(this.#startMs, endMs);
    if (this.#isRoot && this.isSampled) this.#trace.report();
  }

  write(to: MsgpackWriter): void {
    const { context, sink } = this.#trace;
    to.map(FIELDS);
    to.text('service');
    to.text(sink.service);
    to.text('name');
    to.text(NAME);
    to.text('resource');
    to.text(this.#name);
    to.text('trace_id');
    to.unsigned(BigInt(decimalOf(context.low)));
    to.text('span_id');
    to.unsigned(BigInt(decimalOf(this.spanId)));
    to.text('parent_id');
    to.unsigned(this.#parentId === '' ? 0n : BigInt(decimalOf(this.#parentId)));
    to.text('start');
    to.signed(nanos(this.#startMs));
    to.text('duration');
    to.signed(nanos(this.#endMs) - nanos(this.#startMs));
    to.text('error');
    to.signed(this.#isError ? 1n : 0n);
    to.text('meta');
    this.#writeMeta(to);
    to.text('metrics');
    this.#writeMetrics(to);
    to.text('type');
    to.text(TYPE);
  }

  #writeMeta(to: MsgpackWriter): void {
    const { context, sink } = this.#trace;
    const meta = new Map([...sink.tags, ...this.#tags]);
    if (this.#isRoot) for (const [name, value] of context.tags) meta.set(name, value);
    if (this.#isRoot && context.high !== '' && Number(`0x${context.high}`) > 0) meta.set(HIGH_ID, context.high);
    if (this.#isRoot && context.lastId !== '') meta.set('_dd.parent_id', context.lastId);
    if (context.origin !== '') meta.set('_dd.origin', context.origin);
    to.map(meta.size);
    for (const [name, value] of meta) {
      to.text(name);
      to.text(value);
    }
  }

  #writeMetrics(to: MsgpackWriter): void {
    const { agentRate, priority } = this.#trace;
    const metrics: [string, number][] = [['process_id', process.pid]];
    if (this.#isRoot) {
      metrics.push(['_sampling_priority_v1', priority]);
      if (agentRate !== undefined) metrics.push(['_dd.agent_psr', agentRate]);
    }
    to.map(metrics.length);
    for (const [name, value] of metrics) {
      to.text(name);
      to.double(value);
    }
  }
}

function nanos(ms: number): bigint {
  return BigInt(Math.round(ms * 1000)) * 1000n;
}
