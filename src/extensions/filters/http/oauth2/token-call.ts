// One request to a token endpoint, with its retries.

import {
  CallFailure,
  type CallingThread,
  type Clock,
  type HeaderBlock,
  type HttpCallAnswer,
  type HttpCallEvents,
  type HttpCallRequest,
  headerKey,
  Method,
  messageOf,
  type RetryPolicy,
  type RunningCall,
  startHttpCall,
  type Timers,
} from '../../../sdk.js';

/** A token endpoint. */
export interface TokenEndpoint {
  readonly cluster: string;
  readonly host: string;
  readonly path: string;
  readonly timeoutMs: number;
  /** Undefined: requests are not retried. */
  readonly retries: RetryPolicy | undefined;
}

/** The parts of a worker that calls and their owners use. */
export interface CallContext {
  readonly calls: CallingThread;
  readonly clock: Clock;
  readonly timers: Timers;
}

/** Called once for each call that is not cancelled. */
export interface TokenCallEvents {
  /** `failure`: why the endpoint has sent no response; `status` is 503 or 504 then, and the body is empty. */
  onTokenAnswer(status: number, body: Buffer, failure?: string): void;
}

const UNAVAILABLE = 503;
const GATEWAY_TIMEOUT = 504;

export class TokenCall implements HttpCallRequest, HttpCallEvents {
  readonly body: readonly Uint8Array[];
  /** Of all tries. */
  readonly timeoutMs: number;
  readonly #endpoint: TokenEndpoint;
  readonly #authorization: string | undefined;
  readonly #events: TokenCallEvents;
  #call: RunningCall | undefined;
  #isOver = false;

  /**
   * Sends the form. The event may be called before this returns.
   * @param authorization value of the field; undefined: none is sent
   */
  constructor(
    endpoint: TokenEndpoint,
    { calls }: CallContext,
    request: { readonly form: string; readonly authorization: string | undefined },
    events: TokenCallEvents,
  ) {
    this.#endpoint = endpoint;
    this.timeoutMs = endpoint.timeoutMs;
    this.#authorization = request.authorization;
    this.#events = events;
    this.body = [Buffer.from(request.form, 'latin1')];
    try {
      this.#call = startHttpCall(calls, calls.reference(endpoint.cluster), this, this, endpoint.retries);
    } catch (error) {
      // The call has ended without an event.
      this.onFailure(messageOf(error));
    }
  }

  /** The event has been called, or the call was cancelled. */
  get isOver(): boolean {
    return this.#isOver;
  }

  cancel(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#call?.cancel();
  }

  writeHead(head: HeaderBlock): void {
    head.setMethod(Method.Post, 'POST');
    head.setPath(this.#endpoint.path);
    head.add(HOST, this.#endpoint.host);
    head.add(CONTENT_TYPE, 'application/x-www-form-urlencoded');
    head.add(ACCEPT, 'application/json');
    if (this.#authorization !== undefined) head.add(AUTHORIZATION, this.#authorization);
  }

  onAnswer({ body, status }: HttpCallAnswer): void {
    this.#isOver = true;
    this.#events.onTokenAnswer(status, body);
  }

  onFailure(reason: string, failure?: CallFailure): void {
    this.#isOver = true;
    const status = failure === CallFailure.Timeout ? GATEWAY_TIMEOUT : UNAVAILABLE;
    this.#events.onTokenAnswer(status, NONE, reason);
  }
}

const NONE = Buffer.alloc(0);
const HOST = headerKey('host');
const CONTENT_TYPE = headerKey('content-type');
const ACCEPT = headerKey('accept');
const AUTHORIZATION = headerKey('authorization');
