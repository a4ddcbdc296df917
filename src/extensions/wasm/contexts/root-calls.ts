// The HTTP calls of a root context: tokens, answers, and what happens to them when the VM ends.

import { Result } from '../abi.js';
import type { WasmCall, WasmCallAnswer, WasmCallRequest } from '../vm/services.js';
import type { Context } from './context.js';
import { ReceivedHeaders } from './header-map.js';
import type { CallAnswer } from './root.js';

/** Of one root context on one worker, at a time. */
const MAX_CALLS = 1024;
/** Of the bodies of these calls together. */
const MAX_BYTES = 64 * 1024 * 1024;

interface Pending {
  readonly bytes: number;
  /** Undefined while it begins. */
  call: WasmCall | undefined;
}

/** The root context that makes the calls. */
export interface Caller extends Context {
  status: { readonly code: number; readonly message: string };
}

export class RootCalls {
  /** Undefined outside of the callback, and for a call that has failed. */
  answer: CallAnswer | undefined;
  readonly #root: Caller;
  readonly #pending = new Map<number, Pending>();
  #bytes = 0;
  #lastToken = 0;
  #isClosed = false;

  constructor(root: Caller) {
    this.#root = root;
  }

  /** Returns the token of a call, or why there is none. */
  start(request: WasmCallRequest): { readonly token: number } | Result {
    const bytes = request.body.length;
    if (this.#isClosed || this.#pending.size >= MAX_CALLS || this.#bytes + bytes > MAX_BYTES)
      return Result.InternalFailure;
    const token = this.#nextToken();
    const pending: Pending = { bytes, call: undefined };
    this.#pending.set(token, pending);
    this.#bytes += bytes;
    const call = this.#root.vm.services.calls.start(request, (answer) => this.#answered(token, answer));
    if (typeof call === 'number') {
      this.#remove(token);
      return call;
    }
    this.#lastToken = token;
    pending.call = call;
    return { token };
  }

  /** Cancels all calls: no other one can be made. */
  close(): void {
    this.#isClosed = true;
    for (const { call } of this.#pending.values()) call?.cancel();
    this.#pending.clear();
    this.#bytes = 0;
  }

  #nextToken(): number {
    let token = this.#lastToken;
    do token = (token + 4) % 0x1_0000_0000;
    while (token === 0 || this.#pending.has(token));
    return token;
  }

  /** Returns whether the call was pending. */
  #remove(token: number): boolean {
    const pending = this.#pending.get(token);
    if (pending === undefined) return false;
    this.#bytes -= pending.bytes;
    return this.#pending.delete(token);
  }

  #answered(token: number, answer: WasmCallAnswer): void {
    const { vm } = this.#root;
    // The module has just begun the call: it must get the token first.
    if (vm.isRunning) return void vm.defer(() => this.#answered(token, answer));
    if (!this.#remove(token)) return;
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
