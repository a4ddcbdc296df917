// The filter of one request: calls the hooks of the module's version with which the request began, and obeys what they return.

import type { HttpFilter as Definition, Reply } from '../../../../api/index.js';
import { writableKey } from '../../../script/header-keys.js';
import { bytesOf } from '../../../script/text.js';
import {
  byteText,
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
import { ScriptFilterStats } from './stats.js';
import { streamEnd } from './stream-end.js';

type HookName = 'onRequest' | 'onResponse';

const { at } = ScriptFilterStats;

export class ScriptFilter implements HttpFilter {
  readonly #shared: SharedByRequests;
  readonly #definition: Definition;
  readonly #stream: StreamControl;
  readonly #context: ScriptContext;
  #isHead = false;
  #request: ScriptMessage | undefined;
  #response: ScriptMessage | undefined;
  /** The hook that a message waits for, with its time limit. */
  #waiting: { readonly hook: HookName; readonly message: ScriptMessage; readonly timer: Timer } | undefined;
  /** This filter has answered the request: its own hooks do not see the reply. */
  #hasReplied = false;

  constructor(shared: SharedByRequests, definition: Definition, stream: StreamControl, config: unknown) {
    this.#shared = shared;
    this.#definition = definition;
    this.#stream = stream;
    this.#context = new ScriptContext(shared, stream, config, (thrown) => this.#failed('a timer', undefined, thrown));
  }

  decodeHeaders(block: HeaderBlock, endStream: boolean): HeadersStatus {
    const definition = this.#definition;
    this.#isHead = block.method === Method.Head;
    if (definition.onRequest === undefined) return HeadersStatus.Continue;
    const request = new ScriptRequest(block, endStream, this.#stream);
    this.#request = request;
    this.#context.isInRequest = true;
    try {
      return this.#obey('onRequest', request, definition.onRequest(request, this.#context));
    } catch (error) {
      return this.#failed('onRequest', request, error);
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
    this.#context.isInRequest = false;
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
    this.#endWait();
    const { onStreamEnd } = this.#definition;
    if (onStreamEnd !== undefined) {
      try {
        onStreamEnd.call(this.#definition, streamEnd(this.#stream.info), this.#context);
      } catch (error) {
        this.#shared.stats.increment(at.errors);
        this.#shared.faults.report('onStreamEnd', error, 'the request had ended');
      }
    }
    this.#request?.abandon(ENDED);
    this.#response?.abandon(ENDED);
    this.#context.end();
  }

  // ── The result of a hook ─────────────────────────────────────────────────────────────────────────────────────────

  /** Obeys what a hook has returned in its callback. */
  #obey(hook: HookName, message: ScriptMessage, result: unknown): HeadersStatus {
    if (result === undefined) {
      if (this.#context.rematches && hook === 'onRequest') return this.#wait(hook, message, Promise.resolve());
      return message.finish();
    }
    if (result instanceof ScriptReply) return this.#reply(message, result);
    if (typeof (result as Promise<unknown>)?.then === 'function')
      return this.#wait(hook, message, result as Promise<unknown>);
    throw unknownResult(hook);
  }

  #wait(hook: HookName, message: ScriptMessage, result: Promise<unknown>): HeadersStatus {
    message.hold();
    const wait = { hook, message, timer: new Timer<ScriptFilter>(this, onTimeout) };
    this.#waiting = wait;
    this.#shared.timers.reschedule(wait.timer, this.#shared.timeoutMs);
    result.then(
      (value) => this.#waiting === wait && this.#stream.run(() => this.#settled(value)),
      (error: unknown) => this.#waiting === wait && this.#stream.run(() => this.#rejected(error)),
    );
    return HeadersStatus.StopIteration;
  }

  /** The hook that was waited for has ended. */
  #settled(value: unknown): void {
    const { hook, message } = this.#endWait()!;
    if (value instanceof ScriptReply) return void this.#reply(message, value);
    if (value !== undefined) return void this.#failed(hook, message, unknownResult(hook));
    if (hook === 'onRequest' && this.#context.rematches) this.#stream.continueWithNewRoute();
    message.release();
  }

  #rejected(error: unknown): void {
    const { hook, message } = this.#endWait()!;
    if (this.#failed(hook, message, error) === HeadersStatus.Continue) message.release();
  }

  timedOut(): void {
    // While a body is read in pieces, the stream's own timeouts apply.
    if (this.#waiting?.message.isStreaming !== false) return;
    const { hook, message } = this.#endWait()!;
    this.#shared.stats.increment(at.timeouts);
    const why = new Error(`it has not ended within ${this.#shared.timeoutMs} ms`);
    if (this.#fail(hook, message, why, 'script_timeout') === HeadersStatus.Continue) message.release();
  }

  #endWait() {
    const wait = this.#waiting;
    if (wait === undefined) return undefined;
    this.#waiting = undefined;
    this.#shared.timers.cancel(wait.timer);
    return wait;
  }

  // ── Answers ──────────────────────────────────────────────────────────────────────────────────────────────────────

  #reply(message: ScriptMessage, reply: ScriptReply): HeadersStatus {
    let local: LocalReply;
    try {
      local = localReply(reply);
    } catch (error) {
      return this.#failed('ctx.reply()', message, error);
    }
    this.#shared.stats.increment(at.replies);
    this.#answer(message, local);
    return HeadersStatus.StopIteration;
  }

  /** Counts and logs what a hook has thrown. Returns whether the message stops, because the request was answered. */
  #failed(hook: string, message: ScriptMessage | undefined, thrown: unknown): HeadersStatus {
    this.#shared.stats.increment(at.errors);
    return this.#fail(hook, message, thrown, 'script_error');
  }

  #fail(hook: string, message: ScriptMessage | undefined, thrown: unknown, details: string): HeadersStatus {
    const continues = this.#shared.failsOpen;
    this.#shared.faults.report(hook, thrown, continues ? 'the message goes on' : 'the client gets 500');
    if (continues) {
      message?.finishAfterFailure();
      return HeadersStatus.Continue;
    }
    this.#answer(message, { status: 500, body: 'Internal Server Error', details, flags: 0 });
    return HeadersStatus.StopIteration;
  }

  #answer(message: ScriptMessage | undefined, reply: LocalReply): void {
    message?.abandon(ANSWERED);
    this.#hasReplied = true;
    this.#stream.sendLocalReply(reply);
  }
}

const ENDED = 'the request has ended';
const ANSWERED = 'the request was answered';

function onTimeout(filter: ScriptFilter): void {
  filter.timedOut();
}

function unknownResult(hook: HookName): TypeError {
  return new TypeError(`${hook} has returned something else than nothing and ctx.reply()`);
}

/** Throws for a status, a body or a field that cannot be sent. */
function localReply({ body, headers = {}, status }: Reply): LocalReply {
  if (!(Number.isInteger(status) && status >= 200 && status <= 599))
    throw new RangeError(`a reply cannot have the status ${status}`);
  bytesOf(body);
  const fields = Object.entries(headers).map(([name, value]) => ({ key: writableKey(name), value: byteText(value) }));
  if (fields.some(({ value }) => /[\r\n\0]/.test(value))) throw new TypeError('a header value is one line');
  const reply = { status, body, details: 'script_reply', flags: 0 };
  if (fields.length === 0) return reply;
  return {
    ...reply,
    editHeaders: (block) => {
      for (const { key, value } of fields) block.set(key, value);
    },
  };
}
