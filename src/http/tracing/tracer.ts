// The interface of tracers: a tracer makes the spans of requests, propagates their context in headers, and reports them to a collector.

import type { HeaderBlock } from '../headers/header-block.js';

/** A tag's value. Texts have one character per byte, a number is a double. */
export type TagValue = string | bigint | number | boolean;

/** Which side of a service this listener is on (Listener.traffic_direction). */
export const enum Side {
  Ingress = 0,
  Egress = 1,
}

/** A request whose span begins. */
export interface TracedRequest {
  /** The request's head, with the context of the caller's trace. Valid until start() returns. */
  readonly headers: HeaderBlock;
  /** The name of the span, one character per byte. */
  readonly name: string;
  readonly side: Side;
  /** Each try gets a span of its own. */
  readonly spawnsTries: boolean;
  /** The decision of the connection manager. A context in the headers may have another one. */
  readonly isTraced: boolean;
  /** Wall clock, in milliseconds. */
  readonly startMs: number;
}

export interface Tracer {
  /** Begins the span of a request. Spans that are not sampled propagate their context too. */
  start(request: TracedRequest): Span;
  /** Called when no request follows. Spans in flight may still finish; finished ones are reported. */
  close(): void;
}

/** One span. No method throws because of a value. */
export interface Span {
  /** Whether the span is reported: tags of others are ignored, and need not be computed. */
  readonly isSampled: boolean;
  /** Lower-case hexadecimal; '' if the tracer has none. */
  readonly traceId: string;
  readonly spanId: string;
  setOperation(name: string): void;
  /** Sets a tag, or replaces its value. */
  setTag(name: string, value: TagValue): void;
  /** Adds an event. Wall clock, in milliseconds. */
  log(atMs: number, event: string): void;
  /** Writes the span's context to the request that is sent to a host. `host`: its address, or ''. */
  inject(headers: HeaderBlock, host: string): void;
  /** Returns a new child span for a try of the request. */
  child(name: string, startMs: number): Span;
  /** Drops the span: it is not reported. */
  drop(): void;
  /** Ends the span, and reports it if it is sampled. Called once. */
  finish(endMs: number): void;
}
