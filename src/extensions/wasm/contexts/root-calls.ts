// The HTTP calls of a root context: tokens, answers, and what happens to them when the VM ends.

import { Result } from '../abi.js';
import type { WasmCall, WasmCallAnswer, WasmCallRequest } from '../vm/services.js';
import type { Context } from './context.js';
import { ReceivedHeaders } from './header-map.js';
import type { CallAnswer } from './root.js';

/** Of one root context on one worker, at a time. */
const MAX_CALLS = 1024;

/** The root context that makes the calls. */
export interface Caller extends Context {
  status: { readonly code: number; readonly message: string };
}

export class RootCalls {
  /** Undefined outside of the callback, and for a call that has failed. */
  answer: CallAnswer | undefined;
  readonly #root: Caller;
  readonly #pending = new Map<number, WasmCall | undefined>();
  #lastToken = 0;

  constructor(root: Caller) {
    this.#root = root;
  }

  /** Returns the token of a call, or why there is none. */
  start(request: WasmCallRequest): { readonly token: number } | Result {
    if (this.#pending.size >= MAX_CALLS) return Result.InternalFailure;
    const token = this.#nextToken();
    this.#pending.set(token, undefined);
    const call = this.#root.vm.services.calls.start(request, (answer) => this.#answered(token, answer));
    if (typeof call === 'number') {
      this.#pending.delete(token);
      return call;
    }
    this.#lastToken = token;
    if (this.#pending.has(token)) this.#pending.set(token, call);
    return { token };
  }

  close(): void {
    for (const call of this.#pending.values()) call?.cancel();
    this.#pending.clear();
  }

  #nextToken(): number {
    let token = this.#lastToken;
    do token = (token + 4) % 0x1_0000_0000;
    while (token === 0 || this.#pending.has(token));
    return token;
  }

  #answered(token: number, answer: WasmCallAnswer): void {
    const { vm } = this.#root;
    // The module has just begun the call: it must get the token first.
    if (vm.isRunning) return vm.defer(() => this.#answered(token, answer));
    if (!this.#pending.delete(token)) return;
    const isAnswered = answer.headers.length > 0;
    if (isAnswered)
      this.answer = { headers: new ReceivedHeaders(answer.headers), trailers: NO_FIELDS, body: answer.body };
    else this.#root.status = FAILED;
    try {
      vm.call(
        this.#root,
        'proxy_on_http_call_response',
        this.#root.id,
        token,
        answer.headers.length,
        answer.body.length,
        0,
      );
    } finally {
      this.answer = undefined;
      this.#root.status = { code: this.#root.status.code, message: '' };
    }
  }
}

const NO_FIELDS = new ReceivedHeaders([]);
/** What get_status() returns in the callback of a call that has failed. */
const FAILED = { code: Result.BrokenConnection, message: 'reset' };
