// One run of a script for a request or a response: the function envoy_on_request or envoy_on_response in its coroutine.
//
//   Running                              → Ended: the function has returned or failed
//   Running → WaitForBody, HttpCall      : the message is held
//   Running → WaitForChunk, WaitForTrailers : the message passes
//   Running → Responded                  : the request was answered, and the script does not continue

import {
  DataStatus,
  type HeaderBlock,
  HeadersStatus,
  type HttpCall,
  headerKey,
  LuaError,
  LuaOutcome,
  type LuaVm,
  OUTCOME_BITS,
  type StreamControl,
  type StreamInfo,
  YIELD,
} from '../../../sdk.js';
import { type CallOutcome, startCall } from './calls.js';
import type { Direction } from './direction.js';
import { type HandleStream, LuaHandle } from './handle.js';
import type { LoadedScript } from './loaded-script.js';
import { BodyChunks, LuaBody } from './objects/body.js';
import { HeadKind, type HeadOwner, LuaHeaders } from './objects/headers.js';
import { type InfoScope, OUT_OF_SCOPE } from './objects/scope.js';
import type { LuaReply } from './reply.js';

const enum State {
  Running = 0,
  WaitForBody = 1,
  WaitForChunk = 2,
  WaitForTrailers = 3,
  HttpCall = 4,
  Responded = 5,
  Ended = 6,
}

const CONTENT_LENGTH = headerKey('content-length');
const NOTHING = new Uint8Array(0);
/** The coroutine of a run that could not begin. */
const NONE = -1;

/** What a run needs of its filter. */
export interface RunOwner extends HandleStream {
  readonly stream: StreamControl;
  readonly script: LoadedScript;
  /** A change of the request's head selects the route again. */
  readonly clearsRouteCache: boolean;
  failed(message: string): void;
  reply(reply: LuaReply): void;
}

export class LuaRun implements HeadOwner, InfoScope {
  readonly headers: LuaHeaders;
  /** Undefined once the stream has ended: what a script has kept holds this run until Lua collects it, but not the VM, which never would. */
  #owner: RunOwner | undefined;
  /** A no-op once the stream has ended. */
  readonly #stream: StreamControl;
  readonly #direction: Direction;
  readonly #block: HeaderBlock;
  readonly #handle: LuaHandle;
  #state: State = State.Running;
  #coroutine = NONE;
  #endStream: boolean;
  #sawBody = false;
  /** Some of the body has passed on. */
  #isStreamed = false;
  #hasContinued = false;
  #selectsRoute = false;
  #holdsBlock = false;
  #body: LuaBody | undefined;
  /** The piece of the running callback, which the filter does not hold. */
  #piece: Uint8Array = NOTHING;
  #trailers: LuaHeaders | undefined;
  #trailerBlock: HeaderBlock | undefined;
  #call: HttpCall | undefined;
  #reply: LuaReply | undefined;

  constructor(owner: RunOwner, direction: Direction, block: HeaderBlock, endStream: boolean) {
    this.#owner = owner;
    this.#stream = owner.stream;
    this.#direction = direction;
    this.#block = block;
    this.#endStream = endStream;
    this.headers = new LuaHeaders(block, direction.kind, this);
    this.#handle = new LuaHandle(this);
  }

  // ── For the filter ───────────────────────────────────────────────────────────────────────────────────────────────

  /** Begins the function `reference`. */
  start(reference: number): HeadersStatus {
    const { vm } = this.owner.script;
    const started = vm.start(reference, this.#handle);
    this.#coroutine = started >> OUTCOME_BITS;
    // What the script has called has ended the stream.
    if (this.#state === State.Ended) this.#release(vm);
    else this.#obey((started & ((1 << OUTCOME_BITS) - 1)) as LuaOutcome);
    if (this.#isHolding) return HeadersStatus.StopIteration;
    this.#addReplacement();
    this.#passHead();
    return HeadersStatus.Continue;
  }

  onData(piece: Uint8Array, endStream: boolean): DataStatus {
    if (this.#state === State.Ended) return DataStatus.Continue;
    this.#endStream = endStream;
    this.#sawBody = true;
    if (this.#state === State.WaitForChunk) return this.#onChunk(piece);
    if (endStream && this.#state === State.WaitForBody) {
      this.#piece = piece.slice();
      this.#resume(this.body(true));
      this.#piece = NOTHING;
    } else if (endStream && this.#state === State.WaitForTrailers) this.#resume();
    if (this.#isHolding) {
      if (this.#state === State.Responded) return DataStatus.StopNoBuffer;
      if (this.#body?.replacement === undefined) return DataStatus.StopAndBuffer;
      this.#direction.drop(this.#stream);
      return DataStatus.StopNoBuffer;
    }
    this.#isStreamed = true;
    if (this.#body?.replacement === undefined) {
      this.#passHead();
      return DataStatus.Continue;
    }
    this.#addReplacement();
    this.#passHead();
    this.#direction.continue(this.#stream);
    return DataStatus.StopNoBuffer;
  }

  onTrailers(block: HeaderBlock): HeadersStatus {
    if (this.#state === State.Ended) return HeadersStatus.Continue;
    this.#endStream = true;
    this.#trailerBlock = block;
    if (this.#state === State.WaitForChunk) this.#resume();
    else if (this.#state === State.WaitForBody) this.#resume(this.body(true));
    if ((this.#state as State) === State.WaitForTrailers) this.#resume(this.trailers());
    if (this.#isHolding) return HeadersStatus.StopIteration;
    this.#addReplacement();
    this.#passHead();
    return HeadersStatus.Continue;
  }

  /** Called when the stream ends. */
  detach(): void {
    this.end();
    this.#owner = undefined;
  }

  /** Ends the script's use of the message. */
  end(): void {
    if (this.#state === State.Ended) return;
    this.#state = State.Ended;
    this.#call?.cancel();
    this.#call = undefined;
    this.#handle.end();
    this.headers.end();
    this.#trailers?.end();
    this.#body?.end();
    this.#release(this.owner.script.vm);
    if (this.#holdsBlock) this.#block.drop();
    this.#holdsBlock = false;
  }

  // ── For the objects of the script ────────────────────────────────────────────────────────────────────────────────

  get owner(): RunOwner {
    if (this.#owner === undefined) throw new LuaError(OUT_OF_SCOPE);
    return this.#owner;
  }

  get info(): StreamInfo {
    this.#checkScope();
    return this.#stream.info;
  }

  get isRequest(): boolean {
    return this.#direction.kind === HeadKind.Request;
  }

  get canChange(): boolean {
    return !this.#hasContinued;
  }

  changed(): void {
    if (this.owner.clearsRouteCache) this.selectRoute();
  }

  /** The route is selected again when the request continues. */
  selectRoute(): void {
    if (this.isRequest && !this.#hasContinued) this.#selectsRoute = true;
  }

  /** Returns the whole body, YIELD before it has arrived, and undefined if there is none; `isWrapped`: an empty one then. */
  body(isWrapped: boolean): unknown {
    if (!this.#endStream) {
      if (this.#isStreamed) throw new LuaError('cannot call body() after body streaming has started');
      return this.#wait(State.WaitForBody);
    }
    if (this.#isStreamed) throw new LuaError('cannot call body() after body has been streamed');
    if (this.#body !== undefined) return this.#body;
    const held = this.#direction.held(this.#stream);
    const bytes = held.length === 0 ? this.#piece : Buffer.concat([held, this.#piece]);
    if (bytes.length === 0 && !isWrapped) return undefined;
    this.#body = new LuaBody(bytes, (length) => this.#fitHead(length));
    return this.#body;
  }

  bodyChunks(): BodyChunks {
    if (this.#sawBody) throw new LuaError('cannot call bodyChunks after body processing has begun');
    return new BodyChunks(() => {
      this.#checkScope();
      return this.#endStream ? undefined : this.#wait(State.WaitForChunk);
    });
  }

  trailers(): unknown {
    if (this.#trailerBlock !== undefined) {
      this.#trailers ??= new LuaHeaders(this.#trailerBlock, HeadKind.Trailers, ALWAYS);
      return this.#trailers;
    }
    return this.#endStream ? undefined : this.#wait(State.WaitForTrailers);
  }

  respond(reply: LuaReply): unknown {
    if (!this.isRequest) throw new LuaError('respond not currently supported in the response path');
    if (this.#hasContinued) throw new LuaError('respond() cannot be called if headers have been continued');
    const wait = this.#wait(State.Responded);
    this.#reply = reply;
    return wait;
  }

  /** Begins a call that the script waits for. Returns its outcome if that is known at once. */
  call(start: (done: (outcome: CallOutcome) => void) => HttpCall | undefined): unknown {
    this.#checkRunning();
    let outcome: CallOutcome | undefined;
    let isStarted = false;
    const call = startCall(start, (done) => {
      if (!isStarted) outcome = done;
      else this.#stream.run(() => this.#called(done));
    });
    isStarted = true;
    if (outcome !== undefined) return outcome;
    // The start has ended the stream.
    if ((this.#state as State) === State.Ended) call?.cancel();
    this.#checkScope();
    this.#call = call;
    return this.#wait(State.HttpCall);
  }

  // ── Inside ───────────────────────────────────────────────────────────────────────────────────────────────────────

  /** A script may keep objects of a run, and use them in another. */
  #checkScope(): void {
    if (this.#state === State.Ended) throw new LuaError(OUT_OF_SCOPE);
  }

  #checkRunning(): void {
    this.#checkScope();
    // A coroutine of the script's own has yielded to the script, which continues.
    if (this.#state !== State.Running) throw new LuaError('the script waits already for another call');
  }

  #wait(state: State): typeof YIELD {
    this.#checkRunning();
    this.#state = state;
    return YIELD;
  }

  /** The coroutine's number belongs to another one afterwards. */
  #release(vm: LuaVm): void {
    const coroutine = this.#coroutine;
    this.#coroutine = NONE;
    if (coroutine >= 0) vm.release(coroutine);
  }

  /** The message is held. */
  get #isHolding(): boolean {
    return this.#state === State.WaitForBody || this.#state === State.HttpCall || this.#state === State.Responded;
  }

  #resume(...values: unknown[]): void {
    this.#state = State.Running;
    const outcome = this.owner.script.vm.resume(this.#coroutine, ...values);
    if ((this.#state as State) !== State.Ended) this.#obey(outcome);
  }

  #obey(outcome: LuaOutcome): void {
    if (outcome === LuaOutcome.Yielded) {
      if (this.#state === State.Running) this.#fail('script performed an unexpected yield');
      else if (this.#state === State.Responded) this.owner.reply(this.#reply!);
    } else if (outcome === LuaOutcome.Failed) this.#fail(this.owner.script.vm.message());
    else this.end();
  }

  #fail(message: string): void {
    const { owner } = this;
    this.end();
    owner.failed(message);
  }

  #onChunk(piece: Uint8Array): DataStatus {
    this.#isStreamed = true;
    const chunk = new LuaBody(piece, (length) => this.#fitHead(length));
    this.#resume(chunk);
    chunk.end();
    if (this.#isHolding && this.#state !== State.Responded && chunk.replacement === undefined)
      return DataStatus.StopAndBuffer;
    if (chunk.replacement === undefined) return this.#isHolding ? DataStatus.StopNoBuffer : DataStatus.Continue;
    if (chunk.replacement.length > 0) this.#direction.add(this.#stream, chunk.replacement);
    if (!this.#isHolding) this.#direction.continue(this.#stream);
    return DataStatus.StopNoBuffer;
  }

  /** A call that the script has waited for has ended. */
  #called(outcome: CallOutcome): void {
    this.#call = undefined;
    if (this.#state !== State.HttpCall) return;
    this.#resume(...outcome);
    if (this.#isHolding) return;
    const stream = this.#stream;
    if (this.#body?.replacement !== undefined) {
      this.#direction.drop(stream);
      this.#addReplacement();
    }
    this.#isStreamed = this.#sawBody;
    const selectsRoute = this.#selectsRoute && !this.#hasContinued;
    this.#hasContinued = true;
    this.#keepBlock();
    if (selectsRoute) stream.continueWithNewRoute();
    else this.#direction.continue(stream);
  }

  /** The head passes to the next filter when the callback returns. */
  #passHead(): void {
    if (this.#hasContinued) return;
    this.#hasContinued = true;
    this.#keepBlock();
    if (this.#selectsRoute) this.#stream.continueWithNewRoute();
  }

  /** A script that continues may read the head after it has passed. */
  #keepBlock(): void {
    if (this.#state === State.Ended || this.#holdsBlock) return;
    this.#holdsBlock = this.#block.hold();
    if (!this.#holdsBlock) this.headers.end();
  }

  #addReplacement(): void {
    const replacement = this.#body?.replacement;
    if (replacement === undefined) return;
    this.#direction.drop(this.#stream);
    if (replacement.length > 0) this.#direction.add(this.#stream, replacement);
    this.#body!.replacement = undefined;
  }

  #fitHead(length: number): void {
    if (!this.#hasContinued) this.#block.set(CONTENT_LENGTH, String(length));
  }
}

/** Trailers can be changed until their callback returns. */
const ALWAYS: HeadOwner = { canChange: true, changed: () => {} };
