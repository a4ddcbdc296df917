// A gRPC call that is retried. The messages of a stream are kept until its response begins, for the next try.

import { messageOf } from '../common/errors/errors.js';
import type { RetryPolicy } from '../http/routing/retries/retry-policy.js';
import type { CallingThread } from '../upstream/calling-thread.js';
import type { ClusterReference } from '../upstream/cluster-manager.js';
import { RetriedCall, type RunningCall } from '../upstream/http-calls/retried-call.js';
import { GrpcCall, type GrpcCallEvents, type GrpcCallRequest } from './grpc-call.js';
import { GrpcCode } from './status.js';

/** Limit of kept messages, as in Envoy. A stream with more is not retried. */
const MAX_KEPT_BYTES = 64 * 1024;

/** A streaming call. */
export interface GrpcStream extends RunningCall {
  /** Bytes that were not passed to the connection. */
  readonly queuedBytes: number;
  write(message: Uint8Array): void;
  end(): void;
  pause(): void;
  resume(): void;
}

export class RetriedGrpcCall extends RetriedCall<GrpcCall> implements GrpcStream {
  readonly #cluster: ClusterReference;
  readonly #request: GrpcCallRequest;
  readonly #events: GrpcCallEvents;
  /** Messages for the next try. Undefined: there will be none. */
  #kept: Uint8Array[] | undefined = [];
  #keptBytes = 0;
  #isEnded = false;
  #isPaused = false;

  /** `first`: the message of a unary call. */
  constructor(
    caller: CallingThread,
    cluster: ClusterReference,
    request: GrpcCallRequest,
    events: GrpcCallEvents,
    policy: RetryPolicy,
    first?: Uint8Array,
  ) {
    super(caller, policy, request.timeoutMs);
    this.#cluster = cluster;
    this.#request = request;
    this.#events = events;
    if (first === undefined) return;
    this.#kept = [first];
    this.#isEnded = true;
  }

  get queuedBytes(): number {
    return this.isWaiting ? this.#keptBytes : (this.current?.queuedBytes ?? 0);
  }

  write(message: Uint8Array): void {
    this.#keep(message);
    if (!this.isWaiting) this.current?.write(message);
  }

  end(): void {
    this.#isEnded = true;
    if (!this.isWaiting) this.current?.end();
  }

  pause(): void {
    this.#isPaused = true;
    this.current?.pause();
  }

  resume(): void {
    this.#isPaused = false;
    this.current?.resume();
  }

  override settle(): void {
    super.settle();
    this.#kept = undefined;
    this.#keptBytes = 0;
  }

  protected startTry(): GrpcCall | undefined {
    const opening = { messages: this.#kept ?? [], isComplete: this.#isEnded, isPaused: this.#isPaused };
    const call = GrpcCall.start(this.caller, this.#cluster.current, this.#request, this.#events, opening, this);
    if (this.#keptBytes > MAX_KEPT_BYTES) this.#kept = undefined;
    return call;
  }

  protected timedOut(): void {
    this.#events.onEnd({ code: GrpcCode.DeadlineExceeded, details: 'the call did not end in time' });
  }

  protected broke(error: unknown): void {
    this.#events.onEnd({ code: GrpcCode.Internal, details: messageOf(error) });
  }

  #keep(message: Uint8Array): void {
    if (this.#kept === undefined) return;
    this.#keptBytes += message.length;
    if (this.#keptBytes > MAX_KEPT_BYTES) this.disable();
    // The next try needs them all the same.
    if (this.#keptBytes <= MAX_KEPT_BYTES || this.isWaiting) this.#kept.push(message);
    else this.#kept = undefined;
  }
}
