// The filter of one request: calls the hooks of the module's version with which the request began, and obeys what they return.

import type { HttpFilter as Definition } from '../../../../api/index.js';
import { requestIdOf } from '../../../script/faults.js';
import { ScriptFilterStats } from '../../../script/stats.js';
import type { ScopeOwner } from '../../../script/stream-scope.js';
import {
  DataStatus,
  type HeaderBlock,
  HeadersStatus,
  type HttpFilter,
  type LocalReply,
  Method,
  type StreamControl,
  Timer,
} from '../../../sdk.js';
import { ScriptContext } from './context.js';
import type { ScriptMessage } from './message.js';
import { ScriptReply } from './reply.js';
import { ScriptRequest } from './request.js';
import { ScriptResponse } from './response.js';
import type { SharedByRequests } from './shared.js';
import { streamEnd } from './stream-end.js';

type HookName = 'onRequest' | 'onResponse';

/** A hook that a message waits for, with its time limit. */
interface Wait {
  readonly hook: HookName;
  readonly message: ScriptMessage;
  readonly timer: Timer;
}

const NO_WAITS: readonly Wait[] = [];

const { at } = ScriptFilterStats;

export class ScriptFilter implements HttpFilter, ScopeOwner {
  readonly #shared: SharedByRequests;
  readonly #definition: Definition;
  readonly #stream: StreamControl;
  readonly #context: ScriptContext;
  #isHead = false;
  #request: ScriptMessage | undefined;
  #response: ScriptMessage | undefined;
  /** At most one for each message: a response may come while its request is still read in pieces. */
  #waits = NO_WAITS;
  /** This filter has answered the request: its own hooks do not see the reply. */
  #hasReplied = false;
  /** For the log, read while the head is there: it is not kept for that. */
  #requestId: string | undefined;

  constructor(shared: SharedByRequests, definition: Definition, stream: StreamControl, config: unknown) {
    this.#shared = shared;
    this.#definition = definition;
    this.#stream = stream;
    this.#context = new ScriptContext(shared, stream, config, this);
  }

  decodeHeaders(block: HeaderBlock, endStream: boolean): HeadersStatus {
    const definition = this.#definition;
    this.#isHead = block.method === Method.Head;
    if (definition.onResponse !== undefined || definition.onStreamEnd !== undefined)
      this.#requestId = requestIdOf(block);
    if (definition.onRequest === undefined) return HeadersStatus.Continue;
    const request = new ScriptRequest(block, endStream, this.#stream);
    this.#request = request;
    this.#context.request = request;
    this.#context.isInRequest = true;
    try {
      const result: unknown = definition.onRequest(request, this.#context);
      if (result !== undefined) this.#requestId ??= requestIdOf(block);
      return this.#obey('onRequest', request, result);
    } catch (error) {
      this.#requestId = requestIdOf(block);
      return this.#failed('onRequest', request, error);
    } finally {
      this.#context.isInRequest = this.#waits !== NO_WAITS;
    }
  }

  decodeData(offset: number, length: number, endStream: boolean): DataStatus {
    const { bytes } = this.#shared.memory;
    return this.#request?.onData(offset, length, endStream, bytes) ?? DataStatus.Continue;
  }

  decodeTrailers(trailers: HeaderBlock): HeadersStatus {
    return this.#request?.onTrailers(trailers) ?? HeadersStatus.Continue;
  }

  encodeHeaders(block: HeaderBlock, endStream: boolean): HeadersStatus {
    const definition = this.#definition;
    // The request was answered by others while its hook held it.
    for (const wait of this.#waits) {
      if (wait.message.isStreaming) continue;
      this.#endWait(wait);
      wait.message.abandon(ANSWERED);
    }
    if (definition.onResponse === undefined || this.#hasReplied) return HeadersStatus.Continue;
    const response = new ScriptResponse(block, endStream, this.#stream, this.#isHead);
    this.#response = response;
    try {
      return this.#obey('onResponse', response, definition.onResponse(response, this.#context));
    } catch (error) {
      return this.#failed('onResponse', response, error);
    }
  }

  encodeData(offset: number, length: number, endStream: boolean): DataStatus {
    const { bytes } = this.#shared.memory;
    return this.#response?.onData(offset, length, endStream, bytes) ?? DataStatus.Continue;
  }

  encodeTrailers(trailers: HeaderBlock): HeadersStatus {
    return this.#response?.onTrailers(trailers) ?? HeadersStatus.Continue;
  }

  onDestroy(): void {
    this.#endWaits();
    const { onStreamEnd } = this.#definition;
    if (onStreamEnd !== undefined) {
      try {
        onStreamEnd.call(this.#definition, streamEnd(this.#stream.info), this.#context);
      } catch (error) {
        this.#shared.stats.increment(at.errors);
        this.#report('onStreamEnd', onStreamEnd, error, 'the request had ended');
      }
    }
    this.#request?.abandon(ENDED);
    this.#response?.abandon(ENDED);
    this.#context.end();
  }

  // ── ScopeOwner ───────────────────────────────────────────────────────────────────────────────────────────────────

  run(act: () => void): void {
    this.#stream.run(act);
  }

  outlivesHook(): void {
    if (this.#context.isInRequest) this.#requestId ??= requestIdOf(this.#request?.openHead);
  }

  timerFailed(thrown: unknown, act: unknown): void {
    this.#failed('a timer', undefined, thrown, act);
  }

  // ── The result of a hook ─────────────────────────────────────────────────────────────────────────────────────────

  /** Obeys what a hook has returned in its callback. */
  #obey(hook: HookName, message: ScriptMessage, result: unknown): HeadersStatus {
    if (result === undefined) {
      if (this.#context.rematches && hook === 'onRequest') return this.#wait(hook, message, Promise.resolve());
      return message.finish();
    }
    if (typeof (result as Promise<unknown>)?.then === 'function')
      return this.#wait(hook, message, result as Promise<unknown>);
    return this.#obeyValue(hook, message, result);
  }

  /** Returns whether the message stops, because the request was answered. */
  #obeyValue(hook: HookName, message: ScriptMessage, value: unknown): HeadersStatus {
    return value instanceof ScriptReply
      ? this.#reply(value)
      : this.#failed(hook, message, new TypeError(`${hook} has returned something else than nothing and ctx.reply()`));
  }

  #wait(hook: HookName, message: ScriptMessage, result: Promise<unknown>): HeadersStatus {
    message.hold();
    const wait: Wait = { hook, message, timer: new Timer(undefined, () => this.#timedOut(wait)) };
    this.#waits = [...this.#waits, wait];
    this.#shared.timers.reschedule(wait.timer, this.#shared.timeoutMs);
    result.then(
      (value) => this.#waits.includes(wait) && this.#stream.run(() => this.#settled(wait, value)),
      (error: unknown) => this.#waits.includes(wait) && this.#stream.run(() => this.#rejected(wait, error)),
    );
    return HeadersStatus.StopIteration;
  }

  /** The hook that was waited for has ended. */
  #settled(wait: Wait, value: unknown): void {
    const { hook, message } = wait;
    this.#endWait(wait);
    if (value === undefined) message.release(hook === 'onRequest' && this.#context.rematches);
    else if (this.#obeyValue(hook, message, value) === HeadersStatus.Continue) message.release();
  }

  #rejected(wait: Wait, error: unknown): void {
    const { hook, message } = wait;
    this.#endWait(wait);
    if (this.#failed(hook, message, error) === HeadersStatus.Continue) message.release();
  }

  #timedOut(wait: Wait): void {
    const { hook, message } = wait;
    // While a body is read in pieces, the stream's own timeouts apply.
    if (message.isStreaming) return;
    this.#endWait(wait);
    this.#shared.stats.increment(at.timeouts);
    const why = new Error(`it has not ended within ${this.#shared.timeoutMs} ms`);
    if (this.#fail(hook, this.#definition[hook], message, why, 'script_timeout') === HeadersStatus.Continue)
      message.release();
  }

  #endWait(wait: Wait): void {
    this.#shared.timers.cancel(wait.timer);
    const others = this.#waits.filter((each) => each !== wait);
    this.#waits = others.length === 0 ? NO_WAITS : others;
    if (wait.hook === 'onRequest') this.#context.isInRequest = false;
  }

  #endWaits(): void {
    for (const wait of this.#waits) this.#endWait(wait);
  }

  // ── Answers ──────────────────────────────────────────────────────────────────────────────────────────────────────

  #reply(reply: ScriptReply): HeadersStatus {
    this.#shared.stats.increment(at.replies);
    this.#answer(reply.local);
    return HeadersStatus.StopIteration;
  }

  /** Counts and logs what a hook has thrown. Returns whether the message stops, because the request was answered. */
  #failed(
    hook: string,
    message: ScriptMessage | undefined,
    thrown: unknown,
    failed: unknown = this.#definition[hook as HookName],
  ): HeadersStatus {
    this.#shared.stats.increment(at.errors);
    return this.#fail(hook, failed, message, thrown, 'script_error');
  }

  #fail(
    hook: string,
    failed: unknown,
    message: ScriptMessage | undefined,
    thrown: unknown,
    details: string,
  ): HeadersStatus {
    const continues = this.#shared.failsOpen;
    this.#report(hook, failed, thrown, continues ? 'the message goes on' : 'the client gets 500');
    if (continues) {
      message?.finishAfterFailure();
      return HeadersStatus.Continue;
    }
    this.#answer({ status: 500, body: 'Internal Server Error', details, flags: 0 });
    return HeadersStatus.StopIteration;
  }

  #report(hook: string, failed: unknown, thrown: unknown, result: string): void {
    this.#shared.faults.report(hook, thrown, result, { hook: failed, requestId: this.#requestId });
  }

  /** Ends what hooks still do with the request and a response that the reply replaces. */
  #answer(reply: LocalReply): void {
    this.#endWaits();
    this.#request?.abandon(ANSWERED);
    this.#response?.abandon(ANSWERED);
    this.#hasReplied = true;
    this.#stream.sendLocalReply(reply);
  }
}

const ENDED = 'the request has ended';
const ANSWERED = 'the request was answered';
