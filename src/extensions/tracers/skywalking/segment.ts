// A segment: the spans of one request in this process (skywalking.v3.SegmentObject).

import { writeMapText, writeText } from '../../messages/wire.js';
import { type HeaderBlock, ProtobufWriter, type Span, type TagValue } from '../../sdk.js';
import { type CallerSpan, writeSw8 } from './sw8.js';

const COMPONENT_ENVOY = 9000;
const LAYER_HTTP = 3;
const enum SpanType {
  Entry = 0,
  Exit = 1,
}
/** Names of tags that SkyWalking calls differently. */
const RENAMED: ReadonlyMap<string, string> = new Map([
  ['http.url', 'url'],
  ['http.status_code', 'status_code'],
]);

/** What the segments of a tracer share. Texts have one character per byte. */
export interface SegmentSink {
  readonly service: string;
  readonly instance: string;
  report(segment: Uint8Array): void;
}

const message = new ProtobufWriter();
const part = new ProtobufWriter();

export class Segment {
  readonly traceId: string;
  readonly id: string;
  /** The path of the request, which names all its spans. */
  readonly endpoint: string;
  /** The same with the query: as in Envoy, the host gets that. */
  readonly target: string;
  readonly sink: SegmentSink;
  readonly #caller: CallerSpan | undefined;
  readonly #spans: SegmentSpan[] = [];

  constructor(sink: SegmentSink, traceId: string, id: string, target: string, caller: CallerSpan | undefined) {
    this.sink = sink;
    this.traceId = traceId;
    this.id = id;
    this.target = target;
    const query = target.indexOf('?');
    this.endpoint = query < 0 ? target : target.slice(0, query);
    this.#caller = caller;
  }

  open(parentId: number, startMs: number): SegmentSpan {
    const span = new SegmentSpan(this, this.#spans.length, parentId, startMs);
    this.#spans.push(span);
    return span;
  }

  /** Called when the span of the request has ended. */
  report(): void {
    message.clear();
    writeText(message, 1, this.traceId);
    message.string(2, this.id);
    for (const span of this.#spans) message.bytes(3, span.encode(span.isEntry ? this.#caller : undefined));
    writeText(message, 4, this.sink.service);
    writeText(message, 5, this.sink.instance);
    this.sink.report(message.copy());
  }
}

class SegmentSpan implements Span {
  isSampled = true;
  /** A span has only a number. */
  readonly spanId = '';
  readonly #segment: Segment;
  readonly #id: number;
  readonly #parentId: number;
  readonly #startMs: number;
  readonly #tags = new Map<string, string>();
  readonly #logs: { readonly atMs: number; readonly event: string }[] = [];
  #peer = '';
  #isError = false;
  #endMs = 0;

  constructor(segment: Segment, id: number, parentId: number, startMs: number) {
    this.#segment = segment;
    this.#id = id;
    this.#parentId = parentId;
    this.#startMs = startMs;
  }

  get traceId(): string {
    return this.#segment.traceId;
  }

  get isEntry(): boolean {
    return this.#id === 0;
  }

  /** As in Envoy, the path names the span. */
  setOperation(): void {}

  setTag(name: string, value: TagValue): void {
    const text = String(value);
    if (name === 'peer.address') {
      this.#peer = text;
      return;
    }
    if (name === 'error') this.#isError = text === 'true';
    this.#tags.set(RENAMED.get(name) ?? name, text);
  }

  log(atMs: number, event: string): void {
    this.#logs.push({ atMs, event });
  }

  /** As in Envoy, only spans of tries have a context for the host. */
  inject(headers: HeaderBlock, host: string): void {
    if (this.isEntry) return;
    const { id, sink, target, traceId } = this.#segment;
    const { instance, service } = sink;
    writeSw8(headers, { traceId, segmentId: id, spanId: this.#id, service, instance, endpoint: target, address: host });
  }

  child(_name: string, startMs: number): Span {
    return this.#segment.open(this.#id, startMs);
  }

  drop(): void {
    this.isSampled = false;
  }

  finish(endMs: number): void {
    this.#endMs = Math.max(endMs, this.#startMs);
    if (this.isEntry && this.isSampled) this.#segment.report();
  }

  /** Returns an encoded SpanObject. `caller`: for the entry span. */
  encode(caller: CallerSpan | undefined): Uint8Array {
    const span = new ProtobufWriter();
    if (this.#id > 0) span.number(1, this.#id);
    span.int64(2, BigInt(this.#parentId));
    span.number(3, Math.floor(this.#startMs));
    span.number(4, Math.floor(this.#endMs || this.#startMs));
    if (caller !== undefined) span.bytes(5, encodeReference(caller));
    writeText(span, 6, this.#segment.endpoint);
    writeText(span, 7, this.#peer);
    if (!this.isEntry) span.number(8, SpanType.Exit);
    span.number(9, LAYER_HTTP);
    span.number(10, COMPONENT_ENVOY);
    if (this.#isError) span.number(11, 1);
    for (const [name, value] of this.#tags) writeMapText(span, 12, name, value);
    for (const { atMs, event } of this.#logs) {
      part.clear();
      part.number(1, Math.floor(atMs));
      writeMapText(part, 2, '', event);
      span.message(13, part);
    }
    return span.copy();
  }
}

/** Returns an encoded SegmentReference. */
function encodeReference(caller: CallerSpan): Uint8Array {
  part.clear();
  writeText(part, 2, caller.traceId);
  writeText(part, 3, caller.segmentId);
  if (caller.spanId > 0) part.number(4, caller.spanId);
  writeText(part, 5, caller.service);
  writeText(part, 6, caller.instance);
  writeText(part, 7, caller.endpoint);
  writeText(part, 8, caller.address);
  return part.copy();
}
