// What a request's route says: where it goes, how long it may take, and what is changed on the way.

import type { StreamInfo } from '../../../access-log/stream/stream-info.js';
import type { Priority } from '../../../common/priority.js';
import { headerKey } from '../../../common/text/header-names.js';
import { NoRoomError } from '../../../io/memory.js';
import { byteText } from '../../headers/byte-text.js';
import type { HeaderBlock } from '../../headers/header-block.js';
import type { HeaderMutations } from '../../headers/header-mutations.js';
import type { HashPolicy } from '../hashing/hash-policy.js';
import type { RetryPolicy } from '../retries/retry-policy.js';
import { type HostRewrite, rewriteHost } from './host-rewrite.js';
import type { PathRewrite } from './path-rewrite.js';
import type { RouteRateLimits } from './rate-limits.js';
import type { Redirect } from './redirect.js';
import type { StreamDuration } from './stream-duration.js';

export const enum RouteKind {
  /** To `cluster`. */
  Forward = 0,
  /** Answered with redirectStatus and redirectLocation(). */
  Redirect = 1,
  /** Answered with directStatus and directBody. */
  DirectResponse = 2,
}

/** What a route makes of grpc-timeout. */
export interface GrpcTimeout {
  /** The most that counts; 0: there is no limit. */
  readonly maxMs: number;
  /** What is taken off, where more than that is given. */
  readonly offsetMs: number;
}

/** All that a route holds; see Route. */
export interface RouteSettings<C> {
  name: string;
  virtualHostName: string;
  kind: RouteKind;
  cluster: C | undefined;
  clusterName: string;
  clusterNotFoundStatus: number;
  timeoutMs: number;
  idleTimeoutMs: number | undefined;
  streamDuration: StreamDuration | undefined;
  grpcTimeout: GrpcTimeout | undefined;
  retryPolicy: RetryPolicy | undefined;
  hashPolicy: HashPolicy | undefined;
  upgrades: ReadonlyMap<string, boolean> | undefined;
  priority: Priority;
  autoHostRewrite: boolean;
  appendsForwardedHost: boolean;
  includesRequestAttemptCount: boolean;
  includesAttemptCountInResponse: boolean;
  requestBufferLimit: number | undefined;
  rateLimits: RouteRateLimits | undefined;
  pathRewrite: PathRewrite | undefined;
  hostRewrite: HostRewrite | undefined;
  redirect: Redirect | undefined;
  redirectsToHttps: boolean;
  directStatus: number;
  directBody: Uint8Array;
  requestMutations: HeaderMutations | undefined;
  responseMutations: HeaderMutations | undefined;
  filterConfigs: readonly unknown[];
}

/**
 * One route, with one of its clusters if it has several: a table makes a Route for each of them in advance.
 * `C` is what the table's maker takes a cluster's name for.
 */
export class Route<C> {
  /** As configured; '' if it has none. */
  readonly name: string;
  readonly virtualHostName: string;
  readonly kind: RouteKind;
  /** Of RouteKind.Forward; undefined when there is no such cluster. */
  readonly cluster: C | undefined;
  readonly clusterName: string;
  /** The answer when the cluster does not exist: 503, 404 or 500. */
  readonly clusterNotFoundStatus: number;
  /** From the whole request to the whole response; 0: for ever. */
  readonly timeoutMs: number;
  /** Without a byte in either direction; 0: for ever; undefined: as the connection manager says. */
  readonly idleTimeoutMs: number | undefined;
  /** From the beginning of the request to the end of all, whatever moves; undefined: as the connection manager says. */
  readonly streamDuration: StreamDuration | undefined;
  /** For gRPC calls what their clients say counts in place of timeoutMs; undefined: it does not. */
  readonly grpcTimeout: GrpcTimeout | undefined;
  /** The route's own or its virtual host's. */
  readonly retryPolicy: RetryPolicy | undefined;
  /** What its requests are hashed by, where their cluster chooses hosts by hash; undefined: they go to any host. */
  readonly hashPolicy: HashPolicy | undefined;
  /** Which circuit breaker thresholds count. */
  readonly priority: Priority;
  /** The Host becomes that of the chosen upstream host: see rewriteToUpstreamHost(). */
  readonly autoHostRewrite: boolean;
  readonly includesRequestAttemptCount: boolean;
  readonly includesAttemptCountInResponse: boolean;
  /** Most bytes of a request that are kept for retries, within the limit of the connection; undefined: that limit. */
  readonly requestBufferLimit: number | undefined;
  /** How requests are described to who limits them; undefined: they are not. */
  readonly rateLimits: RouteRateLimits | undefined;
  readonly directStatus: number;
  readonly directBody: Uint8Array;
  readonly requestMutations: HeaderMutations | undefined;
  readonly responseMutations: HeaderMutations | undefined;
  /** What typed_per_filter_config says, compiled, FILTER_OFF or FILTER_ON: by the position of the filter in RouteTableOptions.filters. */
  readonly filterConfigs: readonly unknown[];

  readonly #upgrades: ReadonlyMap<string, boolean> | undefined;
  readonly #appendsForwardedHost: boolean;
  readonly #pathRewrite: PathRewrite | undefined;
  readonly #hostRewrite: HostRewrite | undefined;
  readonly #redirect: Redirect | undefined;
  readonly #redirectsToHttps: boolean;

  constructor(settings: RouteSettings<C>) {
    this.name = settings.name;
    this.virtualHostName = settings.virtualHostName;
    this.kind = settings.kind;
    this.cluster = settings.cluster;
    this.clusterName = settings.clusterName;
    this.clusterNotFoundStatus = settings.clusterNotFoundStatus;
    this.timeoutMs = settings.timeoutMs;
    this.idleTimeoutMs = settings.idleTimeoutMs;
    this.streamDuration = settings.streamDuration;
    this.grpcTimeout = settings.grpcTimeout;
    this.retryPolicy = settings.retryPolicy;
    this.hashPolicy = settings.hashPolicy;
    this.priority = settings.priority;
    this.autoHostRewrite = settings.autoHostRewrite;
    this.includesRequestAttemptCount = settings.includesRequestAttemptCount;
    this.includesAttemptCountInResponse = settings.includesAttemptCountInResponse;
    this.requestBufferLimit = settings.requestBufferLimit;
    this.rateLimits = settings.rateLimits;
    this.directStatus = settings.directStatus;
    this.directBody = settings.directBody;
    this.requestMutations = settings.requestMutations;
    this.responseMutations = settings.responseMutations;
    this.filterConfigs = settings.filterConfigs;
    this.#upgrades = settings.upgrades;
    this.#appendsForwardedHost = settings.appendsForwardedHost;
    this.#pathRewrite = settings.pathRewrite;
    this.#hostRewrite = settings.hostRewrite;
    this.#redirect = settings.redirect;
    this.#redirectsToHttps = settings.redirectsToHttps;
  }

  /**
   * Everything that the route changes in a request, in Envoy's order: header mutations, then host, then path. The head is
   * retained if response headers are made from it.
   * @param keepsOriginals writes x-envoy-original-host and -path (Router.suppress_envoy_headers is off)
   */
  finalizeRequest(headers: HeaderBlock, info: StreamInfo, keepsOriginals = true): void {
    this.requestMutations?.apply(headers, info);
    this.applyRewrites(headers, keepsOriginals);
    if (this.responseMutations?.needsRequestHeaders === true && !headers.retain()) {
      throw new NoRoomError('no room in the arena for a request head that the response is made from');
    }
  }

  /** Host and path rewrites alone. */
  applyRewrites(headers: HeaderBlock, keepsOriginals = true): void {
    this.#hostRewrite?.apply(headers, keepsOriginals);
    this.#pathRewrite?.apply(headers, keepsOriginals);
  }

  /**
   * auto_host_rewrite, when the upstream host is known. Later tries replace the Host of the former one, which is nobody's
   * original host: only the first is noted.
   */
  rewriteToUpstreamHost(headers: HeaderBlock, hostname: string, keepsOriginals = true, isFirstTry = true): void {
    rewriteHost(headers, byteText(hostname), isFirstTry && this.#appendsForwardedHost, isFirstTry && keepsOriginals);
  }

  /** Everything that the route changes in a response, locally made ones included. */
  finalizeResponse(headers: HeaderBlock, info: StreamInfo): void {
    this.responseMutations?.applyToResponse(headers, info);
  }

  /** Whether the route allows an upgrade (lower case), forbids it, or leaves it to the connection manager (undefined). */
  allowsUpgrade(type: string): boolean | undefined {
    return this.#upgrades?.get(type);
  }

  /** 301, 302, 303, 307 or 308; of RouteKind.Redirect. */
  get redirectStatus(): number {
    return this.#redirect?.status ?? 301;
  }

  /** The Location of a redirect for a request that came with `scheme`: bytes in text. */
  redirectLocation(headers: HeaderBlock, scheme: string): string {
    if (this.#redirectsToHttps) return `https://${hostOf(headers)}${headers.pathText()}`;
    return this.#redirect!.location(headers, scheme);
  }
}

const HOST = headerKey('host');

function hostOf(headers: HeaderBlock): string {
  return headers.get(HOST) ?? '';
}
