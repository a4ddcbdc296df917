// The filter of one request: runs the script's functions for the request and for the response.

import type { Metadata } from '../../../../config/generated/api.js';
import {
  DataStatus as Data,
  type DataStatus,
  type HeaderBlock,
  HeadersStatus,
  type HttpFilter,
  NO_FUNCTION,
  type Scope,
  type StreamControl,
} from '../../../sdk.js';
import { REQUEST, RESPONSE } from './direction.js';
import type { HandleContext, HandleStream } from './handle.js';
import type { LoadedScript } from './loaded-script.js';
import { HeadKind, LuaHeaders } from './objects/headers.js';
import { logFailure } from './objects/logs.js';
import { type LuaReply, localReply } from './reply.js';
import { LuaRun, type RunOwner } from './run.js';
import { LuaStats } from './stats.js';
import type { JsonStruct } from './values.js';

/** The other key of metadata(). */
const CANONICAL_NAME = 'envoy.filters.http.lua';

/** What the filters of one chain share on a worker. */
export interface LuaChainContext extends HandleContext {
  readonly filterStats: Scope;
  readonly memory: { readonly bytes: Uint8Array };
  readonly clearsRouteCache: boolean;
  /** The filter's name in its chain: the key of its metadata in routes. */
  readonly filterName: string;
}

export class LuaFilter implements HttpFilter, RunOwner, HandleStream {
  readonly context: LuaChainContext;
  readonly stream: StreamControl;
  readonly script: LoadedScript;
  readonly filterContext: JsonStruct | undefined;
  #request: LuaRun | undefined;
  #response: LuaRun | undefined;
  #requestBlock: HeaderBlock | undefined;
  #requestHeaders: LuaHeaders | undefined;

  constructor(
    context: LuaChainContext,
    stream: StreamControl,
    script: LoadedScript,
    filterContext: JsonStruct | undefined,
  ) {
    this.context = context;
    this.stream = stream;
    this.script = script;
    this.filterContext = filterContext;
  }

  // ── HttpFilter ───────────────────────────────────────────────────────────────────────────────────────────────────

  decodeHeaders(block: HeaderBlock, endStream: boolean): HeadersStatus {
    const { onRequest, onResponse } = this.script;
    // The response's function may read the request.
    if (onResponse !== NO_FUNCTION && block.hold()) this.#requestBlock = block;
    if (onRequest === NO_FUNCTION) return HeadersStatus.Continue;
    this.context.filterStats.increment(LuaStats.at.executions);
    this.#request = new LuaRun(this, REQUEST, block, endStream);
    return this.#request.start(onRequest);
  }

  decodeData(offset: number, length: number, endStream: boolean): DataStatus {
    if (this.#request === undefined) return Data.Continue;
    return this.#request.onData(this.context.memory.bytes.subarray(offset, offset + length), endStream);
  }

  decodeTrailers(trailers: HeaderBlock): HeadersStatus {
    return this.#request?.onTrailers(trailers) ?? HeadersStatus.Continue;
  }

  encodeHeaders(block: HeaderBlock, endStream: boolean): HeadersStatus {
    const { onResponse } = this.script;
    if (onResponse === NO_FUNCTION) return HeadersStatus.Continue;
    this.context.filterStats.increment(LuaStats.at.executions);
    this.#response = new LuaRun(this, RESPONSE, block, endStream);
    return this.#response.start(onResponse);
  }

  encodeData(offset: number, length: number, endStream: boolean): DataStatus {
    if (this.#response === undefined) return Data.Continue;
    return this.#response.onData(this.context.memory.bytes.subarray(offset, offset + length), endStream);
  }

  encodeTrailers(trailers: HeaderBlock): HeadersStatus {
    return this.#response?.onTrailers(trailers) ?? HeadersStatus.Continue;
  }

  onDestroy(): void {
    this.#request?.detach();
    this.#response?.detach();
    this.#requestHeaders?.end();
    this.#requestBlock?.drop();
    this.#requestBlock = undefined;
  }

  // ── RunOwner ─────────────────────────────────────────────────────────────────────────────────────────────────────

  get clearsRouteCache(): boolean {
    return this.context.clearsRouteCache;
  }

  failed(message: string): void {
    this.context.filterStats.increment(LuaStats.at.errors);
    logFailure(message);
  }

  reply(reply: LuaReply): void {
    this.stream.sendLocalReply(localReply(reply));
  }

  // ── HandleStream ─────────────────────────────────────────────────────────────────────────────────────────────────

  get requestHeaders(): LuaHeaders | undefined {
    if (this.#requestBlock === undefined) return undefined;
    this.#requestHeaders ??= new LuaHeaders(this.#requestBlock, HeadKind.Request, FIXED);
    return this.#requestHeaders;
  }

  get metadata(): JsonStruct | undefined {
    return this.routeMetadata ?? metadataOf(this.stream.route()?.metadata, CANONICAL_NAME);
  }

  get routeMetadata(): JsonStruct | undefined {
    return metadataOf(this.stream.route()?.metadata, this.context.filterName);
  }

  get virtualHostMetadata(): JsonStruct | undefined {
    return metadataOf(this.stream.route()?.virtualHostMetadata, this.context.filterName);
  }

  drain(): void {
    this.stream.info.drainsConnection = true;
  }
}

/** The head of a request that has gone to a host. */
const FIXED = { canChange: false, changed: () => {} };

function metadataOf(metadata: Metadata | undefined, name: string): JsonStruct | undefined {
  return metadata?.filter_metadata?.[name] as JsonStruct | undefined;
}
