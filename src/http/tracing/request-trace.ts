// The trace of one request: its span, the name that its route gives it, and the spans of its tries.

import type { StreamInfo } from '../../access-log/stream/stream-info.js';
import { byteText } from '../../common/text/byte-text.js';
import { headerKey } from '../../common/text/header-names.js';
import type { HeaderBlock } from '../headers/header-block.js';
import { type CompiledTag, setCustomTags } from './custom-tags.js';
import type { RouteTracing, SpanNameFormats } from './route-tracing.js';
import { tagGrpcStatus, tagRequest, tagTry } from './span-tags.js';
import { Side, type Span } from './tracer.js';

const OPERATION = headerKey('x-envoy-decorator-operation');

/** The rules of a connection manager for all its traces. */
export interface TraceRules {
  readonly side: Side;
  /** Each try has a span of its own. */
  readonly spawnsTries: boolean;
  /** Hosts get the context of the trace. */
  readonly propagates: boolean;
  /** Spans have events. */
  readonly isVerbose: boolean;
  /** Maximum length of paths in tags. */
  readonly maxPathLength: number;
  tagsFor(route: RouteTracing | undefined): readonly CompiledTag[];
  namesFor(route: RouteTracing | undefined): SpanNameFormats;
  /** Called with what a tracer, a tag or a format has thrown at the end of a span: it does not affect the request. */
  failed(error: unknown): void;
}

export class RequestTrace {
  readonly span: Span;
  readonly #rules: TraceRules;
  readonly #route: RouteTracing | undefined;
  /** The operation of the route's decorator, while it is to be sent to the client. */
  #announced = '';

  constructor(rules: TraceRules, span: Span, route: RouteTracing | undefined) {
    this.#rules = rules;
    this.span = span;
    this.#route = route;
  }

  get spawnsTries(): boolean {
    return this.#rules.spawnsTries;
  }

  /** Whether there are formats for names: then headers do not name spans. */
  get #hasFormat(): boolean {
    return this.#rules.namesFor(this.#route).request !== undefined;
  }

  /** Applies the route's decorator and x-envoy-decorator-operation. */
  begin(headers: HeaderBlock): void {
    if (this.#hasFormat) return;
    const decorator = this.#route?.decorator;
    if (decorator !== undefined && decorator.operation !== '') {
      this.span.setOperation(decorator.operation);
      if (decorator.isPropagated) this.#announced = decorator.operation;
    }
    if (this.#rules.side === Side.Egress) {
      if (this.#announced !== '') headers.set(OPERATION, this.#announced);
      return;
    }
    const name = headers.get(OPERATION);
    if (name === undefined) return;
    if (name !== '') {
      this.span.setOperation(name);
      this.#announced = '';
    }
    headers.removeId(OPERATION.id);
  }

  /** Applies the decorator to a response: an inbound one announces the name, an outbound one has that of the called service. */
  respond(headers: HeaderBlock): void {
    if (this.#hasFormat) return;
    if (this.#rules.side === Side.Ingress) {
      if (this.#announced !== '') headers.set(OPERATION, this.#announced);
      return;
    }
    const name = headers.get(OPERATION);
    if (name === undefined) return;
    if (name !== '') this.span.setOperation(name);
    headers.removeId(OPERATION.id);
  }

  /** Begins the span of a try, the `attempt`th (from 1). */
  beginTry(cluster: string, attempt: number, startMs: number): Span {
    const span = this.span.child(`router ${byteText(cluster)} egress`, startMs);
    if (attempt > 1 && span.isSampled) span.setTag('retry.count', String(attempt - 1));
    return span;
  }

  /** Writes the context of `span`, or else of the request, to the request that is sent to `host`. */
  inject(headers: HeaderBlock, span: Span | undefined, host: string): void {
    if (this.#rules.propagates) (span ?? this.span).inject(headers, host);
  }

  /** Ends the span of a try. `status`: 0 without a response. */
  finishTry(span: Span, info: StreamInfo, status: number, flags: number, endMs: number): void {
    try {
      if (span.isSampled) {
        tagTry(span, info, status, flags, this.#rules.isVerbose);
        this.#finalize(span, info, false);
      }
      span.finish(endMs);
    } catch (error) {
      this.#rules.failed(error);
    }
  }

  /** Ends the span of the request. */
  finish(info: StreamInfo, isGrpc: boolean, endMs: number): void {
    const { span } = this;
    try {
      // As in Envoy, a health check that a filter answers is not reported.
      if (info.isHealthCheck) span.drop();
      if (span.isSampled) {
        tagRequest(span, info, isGrpc, this.#rules.maxPathLength, this.#rules.isVerbose);
        this.#finalize(span, info, true);
        if (!tagGrpcStatus(span, info.responseTrailers)) tagGrpcStatus(span, info.responseHeaders);
      }
      span.finish(endMs);
    } catch (error) {
      this.#rules.failed(error);
    }
  }

  #finalize(span: Span, info: StreamInfo, isRequest: boolean): void {
    setCustomTags(span, this.#rules.tagsFor(this.#route), info);
    const { request, tries } = this.#rules.namesFor(this.#route);
    const name = (isRequest ? request : tries)?.text(info);
    if (name !== undefined && name !== '') span.setOperation(name);
  }
}
