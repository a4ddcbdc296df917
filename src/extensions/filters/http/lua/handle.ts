// The stream handle: what envoy_on_request and envoy_on_response get.

import {
  type CallingThread,
  type Clock,
  type ClusterManager,
  type HttpCall,
  LuaError,
  type LuaMethod,
  parseIp,
  type StreamInfo,
} from '../../../sdk.js';
import { type CallOutcome, callCluster, callOptions, LuaCallRequest } from './calls.js';
import type { LoadedScript } from './loaded-script.js';
import type { BodyChunks } from './objects/body.js';
import { LuaClass } from './objects/classes.js';
import type { LuaHeaders } from './objects/headers.js';
import { LuaMetadata } from './objects/metadata.js';
import { LuaPlace } from './objects/place.js';
import type { LuaPublicKey } from './objects/public-key.js';
import { type InfoScope, OUT_OF_SCOPE } from './objects/scope.js';
import type { LuaStatsObject } from './objects/stats-objects.js';
import { LuaConnection, LuaConnectionStreamInfo, LuaStreamInfo } from './objects/stream-info.js';
import { type LuaReply, replyOf } from './reply.js';
import type { JsonStruct } from './values.js';

/** What the handles of one chain share. */
export interface HandleContext {
  readonly calls: CallingThread;
  readonly clusters: ClusterManager;
  readonly clock: Clock;
  readonly stats: LuaStatsObject;
}

/** The parts of a stream beside its message. */
export interface HandleStream {
  readonly context: HandleContext;
  /** The head of the request; undefined: it is not known. */
  readonly requestHeaders: LuaHeaders | undefined;
  /** What metadata() has. */
  readonly metadata: JsonStruct | undefined;
  /** The filter's metadata of the route and its virtual host. */
  readonly routeMetadata: JsonStruct | undefined;
  readonly virtualHostMetadata: JsonStruct | undefined;
  readonly filterContext: JsonStruct | undefined;
  drain(): void;
}

/** The run of a script that has the handle: see LuaRun. */
export interface HandledRun extends InfoScope {
  readonly owner: HandleStream & { readonly script: LoadedScript };
  readonly headers: LuaHeaders;
  readonly isRequest: boolean;
  readonly canChange: boolean;
  selectRoute(): void;
  body(isWrapped: boolean): unknown;
  bodyChunks(): BodyChunks;
  trailers(): unknown;
  respond(reply: LuaReply): unknown;
  call(start: (done: (outcome: CallOutcome) => void) => HttpCall | undefined): unknown;
}

export class LuaHandle {
  #run: HandledRun | undefined;
  #streamInfo: LuaStreamInfo | undefined;
  #metadata: LuaMetadata | undefined;

  constructor(run: HandledRun) {
    this.#run = run;
  }

  get lua(): LuaClass {
    return LuaClass.Handle;
  }

  end(): void {
    this.#run = undefined;
  }

  get #live(): HandledRun {
    if (this.#run === undefined) throw new LuaError(OUT_OF_SCOPE);
    return this.#run;
  }

  get #stream(): HandleStream {
    return this.#live.owner;
  }

  headers(): LuaHeaders {
    return this.#live.headers;
  }

  requestHeaders(): LuaHeaders | null {
    return this.#live.isRequest ? this.#live.headers : (this.#stream.requestHeaders ?? null);
  }

  body(isWrapped: unknown): unknown {
    return this.#live.body(isWrapped === true);
  }

  bodyChunks(): BodyChunks {
    return this.#live.bodyChunks();
  }

  trailers(): unknown {
    return this.#live.trailers();
  }

  metadata(): LuaMetadata {
    this.#metadata ??= new LuaMetadata(this.#stream.metadata);
    return this.#metadata;
  }

  filterContext(): LuaMetadata {
    return new LuaMetadata(this.#stream.filterContext);
  }

  route(): LuaPlace {
    return new LuaPlace(this.#stream.routeMetadata);
  }

  virtualHost(): LuaPlace {
    return new LuaPlace(this.#stream.virtualHostMetadata);
  }

  streamInfo(): LuaStreamInfo {
    this.#streamInfo ??= new LuaStreamInfo(this.#live, () => this.#stream.drain());
    return this.#streamInfo;
  }

  connection(): LuaConnection {
    return new LuaConnection(this.#live);
  }

  connectionStreamInfo(): LuaConnectionStreamInfo {
    return new LuaConnectionStreamInfo(this.#live);
  }

  stats(): LuaStatsObject {
    return this.#stream.context.stats;
  }

  respond(headers: readonly unknown[], body: string | undefined): unknown {
    const run = this.#live;
    if (!run.canChange || !run.isRequest) return run.respond({ status: 200, body: Buffer.alloc(0), fields: [] });
    return run.respond(replyOf(headers, body));
  }

  httpCall(
    name: string,
    headers: readonly unknown[],
    body: string | undefined,
    timeout: unknown,
    flag: unknown,
  ): unknown {
    const { calls, clusters } = this.#stream.context;
    const options = callOptions(timeout, flag);
    const cluster = clusters.find(name)?.current;
    if (cluster === undefined) throw new LuaError('http call cluster invalid. Must be configured');
    const request = new LuaCallRequest(headers, body, options, calls.ip);
    if (!options.isAsynchronous)
      return this.#live.call((done) => callCluster(calls, cluster, request, options.returnsDuplicates, done));
    try {
      callCluster(calls, cluster, request, false, () => {});
    } catch {
      // The cluster has counted it.
    }
    return undefined;
  }

  clearRouteCache(): void {
    this.#live.selectRoute();
  }

  setUpstreamOverrideHost(host: string, isStrict: unknown): void {
    if (!this.#live.isRequest) throw new LuaError('setUpstreamOverrideHost() is for requests');
    const end = host.startsWith('[') ? host.indexOf(']') + 1 : host.indexOf(':');
    const ip = end > 0 ? host.slice(0, end).replace(/^\[|\]$/g, '') : host;
    if (parseIp(ip) === undefined) throw new LuaError('host is not a valid IP address');
    const { info }: { info: StreamInfo } = this.#live;
    info.overrideHost = host;
    info.isOverrideStrict = isStrict === true;
  }

  importPublicKey(der: string, length: number): LuaPublicKey {
    return this.#live.owner.script.keys.import(der.slice(0, length));
  }

  verifySignature(
    hash: string,
    key: string,
    signature: string,
    length: number,
    data: string,
    dataLength: number,
  ): unknown {
    return this.#live.owner.script.keys.verify(hash, key, signature.slice(0, length), data.slice(0, dataLength));
  }

  base64Escape(text: string): string {
    return Buffer.from(text, 'latin1').toString('base64');
  }

  base64Decode(text: string): string | null {
    if (text.length % 4 !== 0 || !/^[A-Za-z0-9+/]*={0,2}$/.test(text)) return null;
    return Buffer.from(text, 'base64').toString('latin1');
  }

  timestamp(unit: unknown): number {
    if (unit !== undefined && unit !== 0) throw new LuaError('timestamp format must be MILLISECOND.');
    return Math.floor(this.#stream.context.clock.realtimeMs);
  }

  timestampString(unit: unknown): string {
    const { realtimeMs } = this.#stream.context.clock;
    if (unit === undefined || unit === 0) return String(Math.floor(realtimeMs));
    if (unit === 1) return String(Math.floor(realtimeMs * 1000));
    throw new LuaError('timestamp format must be MILLISECOND or MICROSECOND.');
  }
}

const { prototype } = LuaHandle;

export const HANDLE: readonly LuaMethod[] = [
  ['headers', '', prototype.headers],
  ['requestHeaders', '', prototype.requestHeaders],
  ['body', 'a', prototype.body],
  ['bodyChunks', '*', prototype.bodyChunks],
  ['trailers', '', prototype.trailers],
  ['metadata', '', prototype.metadata],
  ['filterContext', '', prototype.filterContext],
  ['route', '', prototype.route],
  ['virtualHost', '', prototype.virtualHost],
  ['streamInfo', '', prototype.streamInfo],
  ['connection', '', prototype.connection],
  ['connectionStreamInfo', '', prototype.connectionStreamInfo],
  ['stats', '', prototype.stats],
  ['respond', 'tS', prototype.respond],
  ['httpCall', 'stSaa', prototype.httpCall],
  ['clearRouteCache', '', prototype.clearRouteCache],
  ['setUpstreamOverrideHost', 'sa', prototype.setUpstreamOverrideHost],
  ['importPublicKey', 'sn', prototype.importPublicKey],
  ['verifySignature', 'sssnsn', prototype.verifySignature],
  ['base64Escape', 's', prototype.base64Escape],
  ['base64Decode', 's', prototype.base64Decode],
  ['timestamp', 'a', prototype.timestamp],
  ['timestampString', 'a', prototype.timestampString],
];
