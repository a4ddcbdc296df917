// A span in Zipkin's model (https://zipkin.io/zipkin-api/).

import type { HeaderBlock, Span, TagValue } from '../../sdk.js';
import { writeTraceParent } from '../common/w3c.js';
import { type B3Ids, writeB3 } from './b3.js';

export type Kind = 'SERVER' | 'CLIENT';

/** A finished span. Texts have one character per byte, times are in microseconds. */
export interface FinishedSpan extends B3Ids {
  readonly kind: Kind;
  readonly name: string;
  readonly timestamp: number;
  readonly duration: number;
  readonly isShared: boolean;
  readonly annotations: readonly { readonly timestamp: number; readonly value: string }[];
  readonly tags: ReadonlyMap<string, string>;
}

/** What the spans of a tracer share. */
export interface SpanSink {
  /** The context passes on in traceparent too. */
  readonly propagatesW3c: boolean;
  newSpanId(): string;
  report(span: FinishedSpan): void;
}

export interface SpanPlace extends B3Ids {
  readonly kind: Kind;
  /** The caller's span and this one are the same, or may be. */
  readonly isShared: boolean;
  readonly isSampled: boolean;
  readonly isSingle: boolean;
}

const W3C_TRACE_DIGITS = 32;

export class ZipkinSpan implements Span {
  isSampled: boolean;
  readonly #sink: SpanSink;
  readonly #place: SpanPlace;
  readonly #startMs: number;
  readonly #tags = new Map<string, string>();
  readonly #annotations: { timestamp: number; value: string }[] = [];
  #name: string;

  constructor(sink: SpanSink, place: SpanPlace, name: string, startMs: number) {
    this.#sink = sink;
    this.#place = place;
    this.#name = name;
    this.#startMs = startMs;
    this.isSampled = place.isSampled;
  }

  get traceId(): string {
    return this.#place.traceId;
  }

  get spanId(): string {
    return this.#place.spanId;
  }

  setOperation(name: string): void {
    this.#name = name;
  }

  /** As in Envoy, empty values are left out. */
  setTag(name: string, value: TagValue): void {
    if (this.isSampled && value !== '') this.#tags.set(name, String(value));
  }

  log(atMs: number, event: string): void {
    this.#annotations.push({ timestamp: micros(atMs), value: event });
  }

  inject(headers: HeaderBlock): void {
    const { isSingle, spanId, traceId } = this.#place;
    writeB3(headers, this.#place, this.isSampled, isSingle);
    if (!this.#sink.propagatesW3c) return;
    writeTraceParent(headers, traceId.padStart(W3C_TRACE_DIGITS, '0'), spanId, this.isSampled, undefined);
  }

  child(name: string, startMs: number): Span {
    const { isSingle, spanId: parentId, traceId } = this.#place;
    const spanId = this.#sink.newSpanId();
    const { isSampled } = this;
    const place = { traceId, spanId, parentId, kind: 'CLIENT', isShared: false, isSampled, isSingle } as const;
    return new ZipkinSpan(this.#sink, place, name, startMs);
  }

  drop(): void {
    this.isSampled = false;
  }

  /** The last annotation is Zipkin's name for the end of the span: server send, or client receive. */
  finish(endMs: number): void {
    if (!this.isSampled) return;
    const { isShared, kind, parentId, spanId, traceId } = this.#place;
    const timestamp = micros(this.#startMs);
    const end = Math.max(timestamp, micros(endMs));
    this.#annotations.push({ timestamp: end, value: kind === 'SERVER' ? 'ss' : 'cr' });
    this.#sink.report({
      ...{ traceId, spanId, parentId, kind, isShared, timestamp, duration: end - timestamp },
      name: this.#name,
      annotations: this.#annotations,
      tags: this.#tags,
    });
  }
}

function micros(ms: number): number {
  return Math.round(ms * 1000);
}
