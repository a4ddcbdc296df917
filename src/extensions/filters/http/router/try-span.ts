// The span of one try of a traced request (Tracing.spawn_upstream_span).

import type { StreamInfo } from '../../../../access-log/stream/stream-info.js';
import type { HeaderBlock } from '../../../../http/headers/header-block.js';
import type { RequestTrace } from '../../../../http/tracing/request-trace.js';
import { tagGrpcStatus } from '../../../../http/tracing/span-tags.js';
import type { Span } from '../../../../http/tracing/tracer.js';
import type { Failure } from './failures.js';

export class TrySpan {
  readonly span: Span;
  readonly #trace: RequestTrace;
  readonly #info: StreamInfo;
  #status = 0;
  #flags = 0;
  /** When the response was complete (monotonic); 0: it is not. */
  #completeMs = 0;
  #isOver = false;

  constructor(trace: RequestTrace, info: StreamInfo, cluster: string, attempt: number) {
    this.#trace = trace;
    this.#info = info;
    this.span = trace.beginTry(cluster, attempt, this.#wallClock(info.tryStartMs));
  }

  responded(headers: HeaderBlock): void {
    this.#status = headers.status;
    if (this.span.isSampled) tagGrpcStatus(this.span, headers);
  }

  ended(trailers: HeaderBlock): void {
    if (this.span.isSampled) tagGrpcStatus(this.span, trailers);
  }

  /** Records that the response is complete. The span ends with its request, or before the next try. */
  completed(now: number): void {
    this.#completeMs = now;
  }

  /** Ends the span of a try that has failed. */
  failed({ flag, reason }: Failure, now: number): void {
    if (this.#isOver) return;
    this.span.setTag('error', 'true');
    this.span.setTag('error.reason', reason);
    this.#flags |= flag;
    this.#finish(now);
  }

  /** Ends the span of a try that this proxy abandons, unless its response was complete. `flags`: of the try. */
  abandoned(flags: number, now: number): void {
    if (this.#isOver) return;
    if (this.#completeMs === 0) this.span.setTag('canceled', 'true');
    this.#flags |= flags;
    this.#finish(this.#completeMs || now);
  }

  #finish(nowMs: number): void {
    this.#isOver = true;
    this.#trace.finishTry(this.span, this.#info, this.#status, this.#flags, this.#wallClock(nowMs));
  }

  #wallClock(monotonicMs: number): number {
    return this.#info.startRealtimeMs + monotonicMs - this.#info.startMonotonicMs;
  }
}
