// A service that is called by HTTP (envoy.config.core.v3.HttpService): POST requests to its URI through its cluster, with its
// headers and its timeout.

import { headerKey } from '../../common/text/header-names.js';
import { durationMs } from '../../common/time/duration.js';
import type { HttpService as HttpServiceConfig } from '../../config/generated/api.js';
import { type HeaderBlock, Method } from '../../http/headers/header-block.js';
import { compileHeaderMutations, type HeaderMutations } from '../../http/headers/header-mutations.js';
import type { CallingThread } from '../calling-thread.js';
import type { ClusterReference } from '../cluster-manager.js';
import { HttpCall, type HttpCallEvents } from './http-call.js';
import { type HttpTarget, httpTarget } from './http-uri.js';

export class HttpService {
  readonly #thread: CallingThread;
  readonly #reference: ClusterReference;
  readonly #target: HttpTarget;
  readonly #timeoutMs: number;
  readonly #headers: HeaderMutations | undefined;
  /** Calls in flight. */
  readonly #calls = new Set<HttpCall>();

  /** `config` has passed checkHttpService(). */
  constructor(config: HttpServiceConfig, thread: CallingThread) {
    const { uri, cluster, timeout } = config.http_uri!;
    const toAdd = config.request_headers_to_add;
    const where = (_: string, index: number) => `http_service.request_headers_to_add[${index}]`;
    this.#thread = thread;
    this.#reference = thread.reference(cluster!);
    this.#target = httpTarget(uri!) as HttpTarget;
    this.#timeoutMs = durationMs(timeout!);
    this.#headers = compileHeaderMutations([{ toRemove: undefined, toAdd, where, isLiteral: true }]);
  }

  /**
   * Sends a body in pieces, none of which is empty. Exactly one event is called, unless the service is closed or the call cancelled first.
   * Returns the call for cancel(); undefined: it has ended.
   */
  post(contentType: string, body: readonly Uint8Array[], events: HttpCallEvents): HttpCall | undefined {
    const over = () => {
      if (call !== undefined) this.#calls.delete(call);
      isOver = true;
    };
    const request = {
      writeHead: (head: HeaderBlock) => this.#writeHead(head, contentType),
      body,
      timeoutMs: this.#timeoutMs,
    };
    let isOver = false;
    let call: HttpCall | undefined;
    call = HttpCall.start(this.#thread, this.#reference.current, request, {
      onAnswer: (answer) => {
        over();
        events.onAnswer(answer);
      },
      onFailure: (reason) => {
        over();
        events.onFailure(reason);
      },
    });
    if (call === undefined || isOver) return undefined;
    this.#calls.add(call);
    return call;
  }

  /** Aborts a call; no event follows. */
  cancel(call: HttpCall): void {
    this.#calls.delete(call);
    call.cancel();
  }

  /** Aborts the calls in flight. */
  close(): void {
    for (const call of this.#calls) call.cancel();
    this.#calls.clear();
  }

  #writeHead(head: HeaderBlock, contentType: string): void {
    head.setMethod(Method.Post, 'POST');
    head.setPath(this.#target.path);
    head.add(HOST, this.#target.host);
    head.add(USER_AGENT, 'baton');
    head.add(CONTENT_TYPE, contentType);
    this.#headers?.apply(head, undefined);
  }
}

const HOST = headerKey('host');
const USER_AGENT = headerKey('user-agent');
const CONTENT_TYPE = headerKey('content-type');
