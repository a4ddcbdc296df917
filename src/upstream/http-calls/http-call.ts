// One HTTP request that Baton itself sends to a host of a cluster, and its whole response.

import { messageOf } from '../../common/errors/errors.js';
import { headerKey } from '../../common/text/header-names.js';
import type { HeaderBlock } from '../../http/headers/header-block.js';
import type { RetryPolicy } from '../../http/routing/retries/retry-policy.js';
import type { CallingThread } from '../calling-thread.js';
import type { Cluster, ClusterHost } from '../cluster.js';
import type { ClusterReference } from '../cluster-manager.js';
import { CallFailure, chooseHost, OutgoingCall } from './outgoing-call.js';
import { RetriedCall, type RunningCall } from './retried-call.js';

/** A longer response is rejected, unless the request allows more. */
const MAX_ANSWER_BYTES = 64 * 1024;

export interface HttpCallRequest {
  /** Writes method, path and fields, including host, when a try has a connection. The call adds content-length. */
  writeHead(head: HeaderBlock): void;
  /** Pieces of the body, none of them empty; no piece: no body. */
  readonly body: readonly Uint8Array[];
  /** From the start of the call to the end of the response. */
  readonly timeoutMs: number;
  /** Limit of the body of the response; undefined: 64 KiB. */
  readonly maxAnswerBytes?: number;
}

export interface HttpCallAnswer {
  readonly status: number;
  /** Empty when there is none. */
  readonly contentType: string;
  readonly body: Buffer;
}

/** onAnswer() or onFailure() is called exactly once, perhaps before HttpCall.start() returns, but never after cancel(). */
export interface HttpCallEvents {
  /** Called when the response head has arrived. It is valid until this returns. */
  onHead?(headers: HeaderBlock): void;
  onAnswer(answer: HttpCallAnswer): void;
  /** Called when there is no complete response; `reason` is for the log. Without `failure` no host was called, or its answer is too long. */
  onFailure(reason: string, failure?: CallFailure): void;
}

export class HttpCall extends OutgoingCall {
  readonly #request: HttpCallRequest;
  readonly #events: HttpCallEvents;
  #contentType = '';
  readonly #answer: Buffer[] = [];
  #answerBytes = 0;

  /**
   * Begins a call to a host of the cluster; `retries`: it is one of the tries of that call. Returns undefined, after onFailure(), when no host may be called. Throws what
   * writeHead() throws if that is called at once, and what HttpPool.start() throws: then the call has ended without an event.
   */
  static start(
    caller: CallingThread,
    cluster: Cluster | undefined,
    request: HttpCallRequest,
    events: HttpCallEvents,
    retries?: RetriedCall,
  ): HttpCall | undefined {
    const thread = caller.begin();
    cluster = cluster?.clusterOfHost();
    const host = chooseHost(thread, cluster, retries);
    if (typeof host === 'string') {
      events.onFailure(host);
      return undefined;
    }
    const call = new HttpCall(caller, cluster!, host, request, events, retries);
    call.start(request.timeoutMs);
    return call;
  }

  private constructor(
    caller: CallingThread,
    cluster: Cluster,
    host: ClusterHost,
    request: HttpCallRequest,
    events: HttpCallEvents,
    retries: RetriedCall | undefined,
  ) {
    super(caller, cluster, host, retries);
    this.#request = request;
    this.#events = events;
    for (const piece of request.body) this.enqueue(piece);
    this.completeBody();
  }

  // ── OutgoingCall ─────────────────────────────────────────────────────────────────────────────────────────────────

  protected writeHead(head: HeaderBlock): void {
    this.#request.writeHead(head);
    head.set(CONTENT_LENGTH, String(this.queuedBytes));
  }

  protected responded(headers: HeaderBlock, endStream: boolean): void {
    this.#contentType = headers.get(CONTENT_TYPE) ?? '';
    this.#events.onHead?.(headers);
    // onHead() may have cancelled the call.
    if (endStream && !this.isOver) this.#answered();
  }

  onData(offset: number, length: number, endStream: boolean): void {
    this.#answerBytes += length;
    const { maxAnswerBytes: most = MAX_ANSWER_BYTES } = this.#request;
    if (this.#answerBytes > most) {
      this.abort();
      return this.#events.onFailure(`its answer is longer than ${most} bytes`);
    }
    if (length > 0) {
      this.#answer.push(Buffer.from(this.cluster.thread.memory.bytes.subarray(offset, offset + length)));
    }
    if (endStream) this.#answered();
  }

  onTrailers(): void {
    this.#answered();
  }

  protected failed(failure: CallFailure, detail: string): void {
    this.#events.onFailure(failureText(failure, detail), failure);
  }

  #answered(): void {
    this.complete();
    this.#events.onAnswer({
      status: this.status,
      contentType: this.#contentType,
      body: Buffer.concat(this.#answer),
    });
  }
}

/**
 * Makes a call with retries by a policy; undefined: without. Otherwise like HttpCall.start(). The events are those of the last try, whose
 * timeout is the rest of the request's.
 */
export function startHttpCall(
  caller: CallingThread,
  cluster: ClusterReference,
  request: HttpCallRequest,
  events: HttpCallEvents,
  policy: RetryPolicy | undefined,
): RunningCall | undefined {
  if (policy === undefined) return HttpCall.start(caller, cluster.current, request, events);
  return new RetriedHttpCall(caller, cluster, request, events, policy).begin();
}

class RetriedHttpCall extends RetriedCall<HttpCall> {
  readonly #cluster: ClusterReference;
  readonly #request: HttpCallRequest;
  readonly #events: HttpCallEvents;

  constructor(
    caller: CallingThread,
    cluster: ClusterReference,
    request: HttpCallRequest,
    events: HttpCallEvents,
    policy: RetryPolicy,
  ) {
    super(caller, policy, request.timeoutMs);
    this.#cluster = cluster;
    this.#request = request;
    this.#events = events;
  }

  protected startTry(): HttpCall | undefined {
    return HttpCall.start(this.caller, this.#cluster.current, this.#request, this.#events, this);
  }

  protected timedOut(): void {
    this.#events.onFailure(failureText(CallFailure.Timeout, ''), CallFailure.Timeout);
  }

  protected broke(error: unknown): void {
    this.#events.onFailure(messageOf(error));
  }
}

function failureText(failure: CallFailure, detail: string): string {
  switch (failure) {
    case CallFailure.NoConnection:
      return detail;
    case CallFailure.Timeout:
      return 'it does not answer in time';
    case CallFailure.Invalid:
      return detail === ''
        ? 'it closed the connection before its response was complete'
        : `its answer is not valid HTTP (${detail})`;
    case CallFailure.ConnectionEnded:
    case CallFailure.StreamReset:
    case CallFailure.Refused:
      return 'it has closed the connection without an answer';
  }
}

const CONTENT_LENGTH = headerKey('content-length');
const CONTENT_TYPE = headerKey('content-type');
