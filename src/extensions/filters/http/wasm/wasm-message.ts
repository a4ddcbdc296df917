// A request or a response on its way through a module: what the module sees of it, and what it holds back.
//
// A head is passed on, or stopped. While all is stopped, the body is held unseen, and shown to the module when it continues. Otherwise the
// module sees each piece of the body, after those that it has had buffered.

import { DataStatus, type HeaderBlock, HeadersStatus, type StreamControl } from '../../../sdk.js';
import { Action, DataAction } from '../../../wasm/abi.js';
import { BodyBuffer, type WasmBuffer } from '../../../wasm/contexts/wasm-buffer.js';
import { BlockHeaders, BlockKind, type FieldOwner } from './block-headers.js';
import type { Direction } from './direction.js';
import { INVALID_FIELD, LONG_BODY } from './replies.js';

const NOTHING = new Uint8Array(0);

/** The request whose message it is. */
export interface MessageOwner {
  readonly vm: { readonly hasFailed: boolean; has(name: string): boolean };
  readonly stream: StreamControl;
  /** Maximum bytes of a body that the filter holds. */
  readonly bufferLimit: number;
  /** StopIteration stops the head only. */
  readonly allowsStopIteration: boolean;
  /** Calls a function of the module. Returns undefined if it decides nothing. */
  callModule(name: string, ...values: number[]): number | undefined;
  /** Answers the request if the VM has ended and the plugin fails closed. Returns whether it has done so now. */
  mustFail(): boolean;
  /** Answers the request with 503 after the module's call. */
  refuse(details: string): void;
}

export class WasmMessage implements FieldOwner {
  /** The module, or its failure, has answered the request: nothing of this message passes. */
  isAnswered = false;
  readonly #context: MessageOwner;
  readonly #direction: Direction;
  /** Undefined before and after the time when the module may use it. */
  #head: HeaderBlock | undefined;
  #trailers: HeaderBlock | undefined;
  /** The body that the module sees in its callback. */
  #body: BodyBuffer | undefined;
  #isStopped = false;
  /** The body must wait too. */
  #isAllStopped = false;
  /** The module has had the pieces buffered that came before. */
  #isBuffering = false;
  #isPaused = false;
  #endStream = false;
  /** The module has continued the message during its callback. */
  #hasContinued = false;
  #isInCallback = false;
  #selectsRoute = false;
  #hasPassedHead = false;

  constructor(context: MessageOwner, direction: Direction) {
    this.#context = context;
    this.#direction = direction;
  }

  // ── For the filter ───────────────────────────────────────────────────────────────────────────────────────────────

  onHeaders(block: HeaderBlock, endStream: boolean): HeadersStatus {
    const { kind, onHeaders } = this.#direction;
    this.#head = block;
    this.#endStream = endStream;
    const size = this.#context.vm.has(onHeaders) ? new BlockHeaders(block, kind).size : 0;
    const action = this.#call(onHeaders, size, endStream ? 1 : 0);
    if (this.isAnswered) return this.#stop();
    if (this.#hasContinued || action === undefined || action === Action.Continue) return this.#passHead();
    this.#isAllStopped = action !== Action.StopIteration || !this.#context.allowsStopIteration;
    // The body is not read from its sender until the module continues.
    if (this.#isAllStopped) this.#pause();
    return this.#stop();
  }

  onData(piece: Uint8Array, endStream: boolean): DataStatus {
    if (endStream) this.#endStream = true;
    if (this.isAnswered) return DataStatus.StopNoBuffer;
    if (this.#isAllStopped) return DataStatus.StopAndBuffer;
    if (!this.#context.vm.has(this.#direction.onBody) || this.#context.vm.hasFailed) {
      if (this.#context.mustFail()) return DataStatus.StopNoBuffer;
      if (this.#isStopped && !this.#isBuffering) return DataStatus.StopAndBuffer;
      return this.#passData();
    }
    const action = this.#showBody(piece, endStream);
    const replacement = this.#takeReplacement();
    if (this.isAnswered) return DataStatus.StopNoBuffer;
    if (replacement !== undefined) {
      this.#direction.drop(this.#context.stream);
      if (replacement.length > 0) this.#direction.add(this.#context.stream, replacement);
    }
    return this.#obey(action, replacement !== undefined);
  }

  onTrailers(block: HeaderBlock): HeadersStatus {
    this.#endStream = true;
    this.#trailers = block;
    if (this.isAnswered || this.#isAllStopped) return HeadersStatus.StopIteration;
    if (!this.#showTrailers(block)) return HeadersStatus.StopIteration;
    this.#trailers = undefined;
    this.#passHead();
    return HeadersStatus.Continue;
  }

  /** The stream has ended. */
  end(): void {
    this.#head = this.#trailers = undefined;
    this.#body = undefined;
    this.#isBuffering = false;
  }

  // ── For the module ───────────────────────────────────────────────────────────────────────────────────────────────

  get headers(): BlockHeaders | undefined {
    if (this.#head === undefined) return undefined;
    return new BlockHeaders(this.#head, this.#direction.kind, this);
  }

  get trailers(): BlockHeaders | undefined {
    return this.#trailers && new BlockHeaders(this.#trailers, BlockKind.Trailers, this);
  }

  get body(): WasmBuffer | undefined {
    if (this.#body !== undefined) return this.#body;
    return this.#isBuffering ? new HeldBody(this.#context, this.#direction) : undefined;
  }

  changed(): void {
    if (this.#direction.kind === BlockKind.Request) this.selectRoute();
  }

  refused(): void {
    this.#context.refuse(INVALID_FIELD);
  }

  /** The route is selected again when the head passes. */
  selectRoute(): void {
    if (!this.#hasPassedHead) this.#selectsRoute = true;
  }

  /** The filter holds some of it until the module continues. */
  get isHeld(): boolean {
    return this.#isStopped || this.#isBuffering;
  }

  /** Called after the module's call: it has continued the message. */
  continue(): void {
    if (this.#isInCallback) {
      this.#hasContinued = true;
      return;
    }
    if (!this.#isStopped && !this.#isBuffering) return;
    const { stream } = this.#context;
    if (this.#isAllStopped) {
      this.#isAllStopped = false;
      if (!this.#showHeld()) return this.#resume();
      if (this.isAnswered) return;
    }
    this.#isBuffering = false;
    const selectsRoute = this.#selectsRoute && !this.#hasPassedHead;
    this.#passHead(false);
    this.#trailers = undefined;
    if (selectsRoute) stream.continueWithNewRoute();
    else this.#direction.continue(stream);
    this.#resume();
  }

  // ── Inside ───────────────────────────────────────────────────────────────────────────────────────────────────────

  /** Calls the module for this message. Returns undefined if nothing of it decides. */
  #call(name: string, ...values: number[]): number | undefined {
    this.#hasContinued = false;
    this.#isInCallback = true;
    try {
      return this.#context.callModule(name, ...values);
    } finally {
      this.#isInCallback = false;
    }
  }

  #showBody(piece: Uint8Array, endStream: boolean): number | undefined {
    const heldBytes = this.#isBuffering ? this.#direction.heldBytes(this.#context.stream) : 0;
    const length = heldBytes + piece.length;
    // Not copied before the module reads it: a body may come in many pieces.
    const read = () => (heldBytes === 0 ? piece : Buffer.concat([this.#direction.held(this.#context.stream), piece]));
    this.#body = shownBody(this.#context, length, read);
    return this.#call(this.#direction.onBody, length, endStream ? 1 : 0);
  }

  #takeReplacement(): Uint8Array | undefined {
    const replacement = this.#body?.replacement;
    this.#body = undefined;
    return replacement;
  }

  /** `isReplaced`: the filter holds the new bytes, and drops the received ones. */
  #obey(action: number | undefined, isReplaced: boolean): DataStatus {
    if (this.#hasContinued || action === undefined || action === DataAction.Continue) {
      this.#isBuffering = false;
      if (!isReplaced) return this.#passData();
      this.#passHead();
      this.#direction.continue(this.#context.stream);
      return DataStatus.StopNoBuffer;
    }
    this.#isStopped = true;
    if (action !== DataAction.StopIterationAndBuffer && action !== DataAction.StopIterationAndWatermark)
      return DataStatus.StopNoBuffer;
    this.#isBuffering = true;
    if (action === DataAction.StopIterationAndWatermark) this.#pause();
    return isReplaced ? DataStatus.StopNoBuffer : DataStatus.StopAndBuffer;
  }

  /** Shows the module the body and the trailers that were held unseen. Returns false if it stops them. */
  #showHeld(): boolean {
    const { stream, vm } = this.#context;
    if (this.#direction.heldBytes(stream) > 0 && vm.has(this.#direction.onBody)) {
      this.#isBuffering = true;
      const action = this.#showBody(NOTHING, this.#endStream && this.#trailers === undefined);
      const replacement = this.#takeReplacement();
      if (this.isAnswered) return true;
      if (replacement !== undefined) {
        this.#direction.drop(stream);
        if (replacement.length > 0) this.#direction.add(stream, replacement);
      }
      if (action !== undefined && action !== DataAction.Continue && !this.#hasContinued) return false;
    }
    return this.#trailers === undefined || this.#showTrailers(this.#trailers);
  }

  /** Returns false if the module stops them. */
  #showTrailers(block: HeaderBlock): boolean {
    const { onTrailers } = this.#direction;
    const size = this.#context.vm.has(onTrailers) ? new BlockHeaders(block, BlockKind.Trailers).size : 0;
    const action = this.#call(onTrailers, size);
    if (this.isAnswered) return false;
    const continues = this.#hasContinued || action === undefined || action === Action.Continue;
    if (!continues) this.#isStopped = true;
    return continues;
  }

  #passData(): DataStatus {
    this.#passHead();
    return DataStatus.Continue;
  }

  /** The head belongs to the next filters. */
  #passHead(selects = true): HeadersStatus {
    this.#isStopped = false;
    this.#head = undefined;
    if (!this.#hasPassedHead) {
      this.#hasPassedHead = true;
      if (selects && this.#selectsRoute) this.#context.stream.continueWithNewRoute();
    }
    this.#resume();
    return HeadersStatus.Continue;
  }

  #stop(): HeadersStatus {
    this.#isStopped = true;
    return HeadersStatus.StopIteration;
  }

  #pause(): void {
    if (this.#isPaused) return;
    this.#isPaused = true;
    this.#direction.pause(this.#context.stream);
  }

  #resume(): void {
    if (!this.#isPaused) return;
    this.#isPaused = false;
    this.#direction.resume(this.#context.stream);
  }
}

function shownBody(context: MessageOwner, length: number, read: () => Uint8Array): BodyBuffer {
  const maxLength = Math.max(context.bufferLimit, length);
  return new BodyBuffer({ length, read, maxLength, tooLong: () => context.refuse(LONG_BODY) });
}

/** The body that the filter holds, outside of the module's callback for it. */
class HeldBody implements WasmBuffer {
  readonly #context: MessageOwner;
  readonly #direction: Direction;
  readonly #bytes: Buffer;

  constructor(context: MessageOwner, direction: Direction) {
    this.#context = context;
    this.#direction = direction;
    this.#bytes = direction.held(context.stream);
  }

  get length(): number {
    return this.#bytes.length;
  }

  slice(start: number, length: number): Uint8Array {
    return this.#bytes.subarray(start, start + length);
  }

  replace(start: number, length: number, data: Uint8Array) {
    const { stream } = this.#context;
    const buffer = shownBody(this.#context, this.#bytes.length, () => this.#bytes);
    const result = buffer.replace(start, length, data);
    const { replacement } = buffer;
    if (replacement === undefined) return result;
    this.#direction.drop(stream);
    if (replacement.length > 0) this.#direction.add(stream, replacement);
    return result;
  }
}
