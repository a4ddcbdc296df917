// A span in OpenTelemetry's form (opentelemetry.proto.trace.v1.Span).

import { writeAttribute, writeNanos } from '../../messages/otlp.js';
import { writeText } from '../../messages/wire.js';
import { type HeaderBlock, ProtobufWriter, type Span, type TagValue } from '../../sdk.js';
import { type TraceParent, writeTraceParent } from '../common/w3c.js';

export const enum SpanKind {
  Server = 2,
  Client = 3,
}

/** Flags of a span: the sampled flag of W3C, and whether the parent is known to be in another process. */
const SAMPLED = 1;
const HAS_IS_REMOTE = 0x100;
const IS_REMOTE = 0x200;

const ERROR = 2;
const OTHER_METHOD = '_OTHER';
const METHODS = new Set(['GET', 'HEAD', 'POST', 'PUT', 'DELETE', 'CONNECT', 'OPTIONS', 'TRACE', 'PATCH']);
/** Statuses of gRPC that are errors of a server. */
const SERVER_ERRORS = new Set(['2', '4', '12', '13', '14', '15']);

/** What the spans of a tracer share. */
export interface SpanSink {
  newSpanId(): string;
  /** Takes an encoded span. */
  report(span: Uint8Array): void;
}

/** Where a span belongs. */
export interface SpanPlace {
  readonly traceId: string;
  /** The parent's ID, or ''. */
  readonly parentId: string;
  readonly isParentRemote: boolean;
  readonly state: string;
  readonly isSampled: boolean;
}

interface Event {
  readonly atMs: number;
  readonly name: string;
}

const message = new ProtobufWriter();
const part = new ProtobufWriter();

export class OpenTelemetrySpan implements Span {
  readonly spanId: string;
  isSampled: boolean;
  readonly #place: SpanPlace;
  readonly #sink: SpanSink;
  readonly #kind: SpanKind;
  readonly #startMs: number;
  readonly #tags = new Map<string, TagValue>();
  #events: Event[] | undefined;
  #name: string;
  #isError = false;

  constructor(sink: SpanSink, place: SpanPlace, kind: SpanKind, name: string, startMs: number) {
    this.#sink = sink;
    this.#place = place;
    this.#kind = kind;
    this.#name = name;
    this.#startMs = startMs;
    this.isSampled = place.isSampled;
    this.spanId = sink.newSpanId();
  }

  get traceId(): string {
    return this.#place.traceId;
  }

  setOperation(name: string): void {
    this.#name = name;
  }

  setTag(name: string, value: TagValue): void {
    if (!this.isSampled) return;
    if (name === 'http.method' && typeof value === 'string' && !METHODS.has(value)) value = OTHER_METHOD;
    if (name === 'http.status_code') this.#isError ||= this.#isErrorStatus(Number(value));
    if (name === 'grpc.status_code') this.#isError ||= this.#isErrorCode(String(value));
    this.#tags.set(name, value);
  }

  log(atMs: number, event: string): void {
    this.#events ??= [];
    this.#events.push({ atMs, name: event });
  }

  inject(headers: HeaderBlock): void {
    writeTraceParent(headers, this.traceId, this.spanId, this.isSampled, this.#place.state);
  }

  child(name: string, startMs: number): Span {
    const { state, traceId } = this.#place;
    const place = { traceId, parentId: this.spanId, isParentRemote: false, state, isSampled: this.isSampled };
    return new OpenTelemetrySpan(this.#sink, place, SpanKind.Client, name, startMs);
  }

  drop(): void {
    this.isSampled = false;
  }

  finish(endMs: number): void {
    if (this.isSampled) this.#sink.report(this.#encode(endMs));
  }

  /** Servers are to blame for their own errors only (https://opentelemetry.io/docs/specs/semconv/http/http-spans/#status). */
  #isErrorStatus(status: number): boolean {
    return status >= (this.#kind === SpanKind.Client ? 400 : 500);
  }

  #isErrorCode(code: string): boolean {
    return this.#kind === SpanKind.Client ? code !== '0' : SERVER_ERRORS.has(code);
  }

  #encode(endMs: number): Uint8Array {
    const { isParentRemote, parentId, state, traceId } = this.#place;
    message.clear();
    message.hex(1, traceId);
    message.hex(2, this.spanId);
    writeText(message, 3, state);
    if (parentId !== '') message.hex(4, parentId);
    writeText(message, 5, this.#name);
    message.number(6, this.#kind);
    writeNanos(message, 7, this.#startMs);
    writeNanos(message, 8, Math.max(endMs, this.#startMs));
    for (const [name, value] of this.#tags) writeAttribute(message, 9, name, value);
    for (const { atMs, name } of this.#events ?? []) {
      part.clear();
      writeNanos(part, 1, atMs);
      part.string(2, name);
      message.message(11, part);
    }
    if (this.#isError) {
      part.clear();
      part.number(3, ERROR);
      message.message(15, part);
    }
    message.fixed32(16, SAMPLED | HAS_IS_REMOTE | (isParentRemote ? IS_REMOTE : 0));
    return message.copy();
  }
}

/** Returns the place of a span without parent, or with one in another process. */
export function rootPlace(traceId: string, parent: TraceParent | undefined, isSampled: boolean): SpanPlace {
  return {
    traceId,
    parentId: parent?.spanId ?? '',
    isParentRemote: parent !== undefined,
    state: parent?.state ?? '',
    isSampled,
  };
}
