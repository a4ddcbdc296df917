// The filter of one request: its context in the module, whose functions see the request and the response.

import {
  DataStatus,
  type HeaderBlock,
  HeadersStatus,
  type HttpFilter,
  type LocalReply,
  NoRoomError,
  type StreamControl,
} from '../../../sdk.js';
import { BufferType, MapType, Result, StreamType } from '../../../wasm/abi.js';
import { Context, type LocalResponse } from '../../../wasm/contexts/context.js';
import type { HeaderMap, MutableHeaderMap } from '../../../wasm/contexts/header-map.js';
import type { RootContext } from '../../../wasm/contexts/root-context.js';
import type { WasmBuffer } from '../../../wasm/contexts/wasm-buffer.js';
import type { PluginUse } from '../../../wasm/plugin/plugin-use.js';
import { BlockHeaders, BlockKind } from './block-headers.js';
import { REQUEST, RESPONSE } from './direction.js';
import { FAILED, localReply, refusal } from './replies.js';
import { StreamProperties } from './stream-properties.js';
import { type MessageOwner, WasmMessage } from './wasm-message.js';

/** What the requests of a filter in one chain share, on one worker. */
export interface SharedByRequests {
  readonly memory: { readonly bytes: Uint8Array };
  /** Maximum bytes of a body that the filter holds. */
  readonly bufferLimit: number;
}

export class HttpContext extends Context implements HttpFilter, MessageOwner {
  readonly stream: StreamControl;
  readonly root: RootContext;
  protected readonly logPrefix: string;
  readonly #shared: SharedByRequests;
  readonly #use: PluginUse;
  readonly #request = new WasmMessage(this, REQUEST);
  readonly #response = new WasmMessage(this, RESPONSE);
  readonly #properties: StreamProperties;
  #isCreated = false;
  #isDone = false;
  #hasResponse = false;
  /** The VM's failure has answered the request. */
  #hasFailed = false;
  /** The module has answered the request; in the callbacks for a response, the response. */
  #hasReplied = false;
  /** Held until the end of the stream: for properties and proxy_on_log(). */
  #heldRequest: HeaderBlock | undefined;
  #heldResponse: HeaderBlock | undefined;
  #isLogging = false;

  constructor(shared: SharedByRequests, use: PluginUse, root: RootContext, stream: StreamControl) {
    super(root.vm, root.vm.nextId());
    this.#shared = shared;
    this.#use = use;
    this.root = root;
    this.stream = stream;
    this.logPrefix = use.plugin.streamLogPrefix;
    this.#properties = new StreamProperties(stream);
    this.vm.contexts.set(this.id, this);
  }

  get bufferLimit(): number {
    return this.#shared.bufferLimit;
  }

  get allowsStopIteration(): boolean {
    return this.#use.plugin.allowsStopIteration;
  }

  // ── HttpFilter ───────────────────────────────────────────────────────────────────────────────────────────────────

  decodeHeaders(block: HeaderBlock, endStream: boolean): HeadersStatus {
    // Properties of the request are read in every callback.
    if (!block.hold()) throw new NoRoomError('no room in the arena for a request head that a module reads');
    this.#heldRequest = block;
    this.#isCreated = true;
    this.vm.call(this, 'proxy_on_context_create', this.id, this.root.id);
    return this.#request.onHeaders(block, endStream);
  }

  decodeData(offset: number, length: number, endStream: boolean): DataStatus {
    return this.#request.onData(this.#shared.memory.bytes.subarray(offset, offset + length), endStream);
  }

  decodeTrailers(trailers: HeaderBlock): HeadersStatus {
    return this.#request.onTrailers(trailers);
  }

  encodeHeaders(block: HeaderBlock, endStream: boolean): HeadersStatus {
    // A filter before this one has answered.
    if (!this.#isCreated) return HeadersStatus.Continue;
    // The host's exchange may end before a module continues.
    if (block.hold()) this.#properties.response = this.#heldResponse = block;
    this.#hasResponse = true;
    this.#hasReplied = false;
    return this.#response.onHeaders(block, endStream);
  }

  encodeData(offset: number, length: number, endStream: boolean): DataStatus {
    if (!this.#isCreated) return DataStatus.Continue;
    return this.#response.onData(this.#shared.memory.bytes.subarray(offset, offset + length), endStream);
  }

  encodeTrailers(trailers: HeaderBlock): HeadersStatus {
    return this.#isCreated ? this.#response.onTrailers(trailers) : HeadersStatus.Continue;
  }

  onDestroy(): void {
    this.#isDone = true;
    this.#request.end();
    this.#response.end();
    // A call of the module may cause the end of a stream, but modules are not called within their calls.
    if (!this.vm.isRunning || !this.vm.defer(() => this.#end())) this.#end();
  }

  // ── For the messages ─────────────────────────────────────────────────────────────────────────────────────────────

  /** Calls a function of the module. A failure answers the request, according to the plugin's policy. */
  callModule(name: string, ...values: number[]): number | undefined {
    if (this.vm.hasFailed) {
      this.mustFail();
      return undefined;
    }
    const result = this.vm.call(this, name, this.id, ...(this.#isHeaders(name) ? values.slice(0, -1) : values));
    if (this.vm.hasFailed) this.#fail();
    return result;
  }

  /** Answers the request if the VM has ended and the plugin fails closed. Returns whether it has done so now. */
  mustFail(): boolean {
    if (!this.vm.hasFailed || this.#hasFailed || this.#use.plugin.failurePolicy === 'FAIL_OPEN') return false;
    this.#fail();
    return true;
  }

  /** As no callback would continue what the module holds, it is answered or passed on now. */
  override vmFailed(): void {
    if (!this.#request.isHeld && !this.#response.isHeld) return;
    this.stream.run(() => {
      if (this.mustFail()) return;
      this.#request.continue();
      this.#response.continue();
    });
  }

  refuse(details: string): void {
    this.#reply(refusal(details));
  }

  // ── Context ──────────────────────────────────────────────────────────────────────────────────────────────────────

  override readableMap(type: MapType): HeaderMap | undefined {
    if (this.#isLogging) {
      if (type === MapType.RequestHeaders)
        return this.#heldRequest && new BlockHeaders(this.#heldRequest, BlockKind.Request);
      if (type === MapType.ResponseHeaders)
        return this.#heldResponse && new BlockHeaders(this.#heldResponse, BlockKind.Response);
    }
    return super.readableMap(type);
  }

  override mutableMap(type: MapType): MutableHeaderMap | undefined {
    switch (type) {
      case MapType.RequestHeaders:
        return this.#request.headers;
      case MapType.RequestTrailers:
        return this.#request.trailers;
      case MapType.ResponseHeaders:
        return this.#response.headers;
      case MapType.ResponseTrailers:
        return this.#response.trailers;
      default:
        return undefined;
    }
  }

  override buffer(type: BufferType): WasmBuffer | undefined {
    if (type === BufferType.HttpRequestBody) return this.#request.body;
    if (type === BufferType.HttpResponseBody) return this.#response.body;
    return super.buffer(type);
  }

  override property(path: readonly string[]): Buffer | Result {
    return this.#properties.get(path) ?? super.property(path);
  }

  override setProperty(path: string, value: Buffer): Result {
    return this.#properties.set(path, value);
  }

  override continueStream(type: StreamType): Result {
    if (type !== StreamType.Request && type !== StreamType.Response) return Result.BadArgument;
    const message = type === StreamType.Request ? this.#request : this.#response;
    this.#later(() => message.continue());
    return Result.Ok;
  }

  override closeStream(type: StreamType): Result {
    if (type !== StreamType.Request && type !== StreamType.Response) return Result.Ok;
    this.#answered();
    this.#later(() => this.stream.resetStream('wasm_close_stream'));
    return Result.Ok;
  }

  override sendLocalResponse(response: LocalResponse): Result {
    const reply = localReply(response);
    if (reply === undefined) return Result.BadArgument;
    this.#reply(reply);
    return Result.Ok;
  }

  override clearRouteCache(): void {
    this.#request.selectRoute();
  }

  override done(): Result {
    return Result.Ok;
  }

  // ── Inside ───────────────────────────────────────────────────────────────────────────────────────────────────────

  /** Sends the first reply after the module's call. */
  #reply(reply: LocalReply): void {
    if (this.#hasReplied) return;
    this.#hasReplied = true;
    this.#answered();
    this.#later(() => this.stream.sendLocalReply(reply));
  }

  /** Acts after the module's call. */
  #later(act: () => void): void {
    if (this.#isDone) return;
    this.vm.defer(() => this.stream.run(act));
  }

  #fail(): void {
    if (this.#hasFailed) return;
    this.#hasFailed = true;
    this.#answered();
    this.stream.sendLocalReply(FAILED);
  }

  /** The module sees no more of the request, nor of a response that is replaced. */
  #answered(): void {
    this.#request.isAnswered = true;
    if (this.#hasResponse) this.#response.isAnswered = true;
  }

  /** The callback for heads has no endStream in version 0.1.0. */
  #isHeaders(name: string): boolean {
    return this.vm.settings.module.abi === '0.1.0' && (name === REQUEST.onHeaders || name === RESPONSE.onHeaders);
  }

  #end(): void {
    try {
      if (this.#isCreated) this.#callLast();
    } finally {
      this.vm.contexts.delete(this.id);
      this.#properties.response = undefined;
      this.#heldRequest?.drop();
      this.#heldResponse?.drop();
      this.#use.release();
    }
  }

  #callLast(): void {
    this.#isLogging = true;
    this.vm.call(this, 'proxy_on_log', this.id);
    this.#isLogging = false;
    this.vm.call(this, 'proxy_on_done', this.id);
    this.vm.call(this, 'proxy_on_delete', this.id);
  }
}
