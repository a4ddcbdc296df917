// A route: the destination of a request, its timeouts, and the changes to request and response.

import type { StreamInfo } from '../../../access-log/stream/stream-info.js';
import type { Priority } from '../../../common/priority.js';
import { byteText } from '../../../common/text/byte-text.js';
import { headerKey } from '../../../common/text/header-names.js';
import type { Metadata } from '../../../config/generated/api.js';
import { NoRoomError } from '../../../io/memory.js';
import { type HeaderBlock, Method } from '../../headers/header-block.js';
import type { HeaderLine } from '../../headers/header-line.js';
import type { HeaderMutations } from '../../headers/header-mutations.js';
import type { RouteTracing } from '../../tracing/route-tracing.js';
import type { HashPolicy } from '../hashing/hash-policy.js';
import type { RetryPolicy } from '../retries/retry-policy.js';
import type { RouteCounts } from '../stats/route-counts.js';
import type { VirtualClusters } from '../stats/virtual-clusters.js';
import type { ConnectConfig } from './connect-config.js';
import { type HostRewrite, rewriteHost } from './host-rewrite.js';
import type { InternalRedirects } from './internal-redirects.js';
import type { MetadataMatch } from './metadata-match.js';
import type { MirrorPolicy } from './mirror-policy.js';
import type { PathRewrite } from './path-rewrite.js';
import type { RouteRateLimits } from './rate-limits.js';
import type { Redirect } from './redirect.js';
import type { StreamDuration } from './stream-duration.js';
import type { TemplateRewrite } from './template-rewrite.js';

export const enum RouteKind {
  /** Forwarded to `cluster`. */
  Forward = 0,
  /** Answered with redirectStatus and redirectLocation(). */
  Redirect = 1,
  /** Answered with directStatus and directBody. */
  DirectResponse = 2,
}

/** How a route applies grpc-timeout. */
export interface GrpcTimeout {
  /** Upper limit; 0: no limit. */
  readonly maxMs: number;
  /** Subtracted from values that are larger. */
  readonly offsetMs: number;
}

/** The properties of a Route, which documents them. */
export interface RouteSettings<C> {
  name: string;
  virtualHostName: string;
  virtualClusters: VirtualClusters | undefined;
  counts: RouteCounts | undefined;
  metadata: Metadata | undefined;
  virtualHostMetadata: Metadata | undefined;
  kind: RouteKind;
  cluster: C | undefined;
  clusterName: string;
  clusterNotFoundStatus: number;
  timeoutMs: number;
  idleTimeoutMs: number | undefined;
  streamDuration: StreamDuration | undefined;
  grpcTimeout: GrpcTimeout | undefined;
  retryPolicy: RetryPolicy | undefined;
  hedges: boolean;
  internalRedirects: InternalRedirects | undefined;
  hashPolicy: HashPolicy | undefined;
  metadataMatch: MetadataMatch | undefined;
  upgrades: ReadonlyMap<string, boolean> | undefined;
  connect: ConnectConfig | undefined;
  priority: Priority;
  autoHostRewrite: boolean;
  appendsForwardedHost: boolean;
  includesRequestAttemptCount: boolean;
  includesAttemptCountInResponse: boolean;
  requestBufferLimit: number | undefined;
  rateLimits: RouteRateLimits | undefined;
  mirrors: readonly MirrorPolicy<C>[] | undefined;
  tracing: RouteTracing | undefined;
  pathRewrite: PathRewrite | TemplateRewrite | undefined;
  /** The Host that a weighted cluster sets; undefined: none. */
  clusterHost: HeaderLine | undefined;
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
 * One route to one cluster. For a route with several clusters, the table makes one Route for each in advance. `C` is the type that the
 * table's ClusterResolver returns.
 */
export class Route<C> {
  /** As configured; '' without a name. */
  readonly name: string;
  readonly virtualHostName: string;
  /** The virtual clusters of its virtual host; undefined: none. */
  readonly virtualClusters: VirtualClusters | undefined;
  /** The stats of its stat_prefix; undefined: none. */
  readonly counts: RouteCounts | undefined;
  /** For logs and headers. */
  readonly metadata: Metadata | undefined;
  readonly virtualHostMetadata: Metadata | undefined;
  readonly kind: RouteKind;
  /** For RouteKind.Forward; undefined if the cluster does not exist. */
  readonly cluster: C | undefined;
  readonly clusterName: string;
  /** Status of the reply if the cluster does not exist: 503, 404 or 500. */
  readonly clusterNotFoundStatus: number;
  /** From the complete request to the complete response; 0: no timeout. */
  readonly timeoutMs: number;
  /** Time without a byte in either direction; 0: no timeout; undefined: the connection manager's setting. */
  readonly idleTimeoutMs: number | undefined;
  /** Limit for the whole stream, regardless of progress; undefined: the connection manager's setting. */
  readonly streamDuration: StreamDuration | undefined;
  /** How the grpc-timeout of gRPC calls replaces timeoutMs; undefined: it does not. */
  readonly grpcTimeout: GrpcTimeout | undefined;
  /** The route's own policy, or that of its virtual host. */
  readonly retryPolicy: RetryPolicy | undefined;
  /** A try that times out goes on beside the next one (HedgePolicy.hedge_on_per_try_timeout). */
  readonly hedges: boolean;
  /** Which redirects of hosts are followed; undefined: none. */
  readonly internalRedirects: InternalRedirects | undefined;
  /** The hash by which the cluster chooses a host, if its load balancer uses hashes; undefined: no hash. */
  readonly hashPolicy: HashPolicy | undefined;
  /** What the metadata of the host must have, if the cluster has subsets; undefined: no requirement. */
  readonly metadataMatch: MetadataMatch | undefined;
  /** Selects the circuit breaker thresholds. */
  readonly priority: Priority;
  /** Host is set to the name of the chosen upstream host: see rewriteToUpstreamHost(). */
  readonly autoHostRewrite: boolean;
  readonly includesRequestAttemptCount: boolean;
  readonly includesAttemptCountInResponse: boolean;
  /** Maximum bytes of a request that are buffered for retries, within the limit of the connection; undefined: that limit. */
  readonly requestBufferLimit: number | undefined;
  /** Which clusters get copies of requests; undefined: none. */
  readonly mirrors: readonly MirrorPolicy<C>[] | undefined;
  /** Makes descriptors for rate limit filters; undefined: none. */
  readonly rateLimits: RouteRateLimits | undefined;
  /** Fields about spans; undefined: the route has none. */
  readonly tracing: RouteTracing | undefined;
  readonly directStatus: number;
  readonly directBody: Uint8Array;
  readonly requestMutations: HeaderMutations | undefined;
  readonly responseMutations: HeaderMutations | undefined;
  /** Compiled typed_per_filter_config, FILTER_OFF or FILTER_ON, indexed by the filter's position in RouteTableOptions.filters. */
  readonly filterConfigs: readonly unknown[];

  /** Undefined: CONNECT requests are forwarded. */
  readonly connect: ConnectConfig | undefined;

  readonly #upgrades: ReadonlyMap<string, boolean> | undefined;
  readonly #appendsForwardedHost: boolean;
  readonly #pathRewrite: PathRewrite | TemplateRewrite | undefined;
  readonly #clusterHost: HeaderLine | undefined;
  readonly #hostRewrite: HostRewrite | undefined;
  readonly #redirect: Redirect | undefined;
  readonly #redirectsToHttps: boolean;

  constructor(settings: RouteSettings<C>) {
    this.name = settings.name;
    this.virtualHostName = settings.virtualHostName;
    this.virtualClusters = settings.virtualClusters;
    this.counts = settings.counts;
    this.metadata = settings.metadata;
    this.virtualHostMetadata = settings.virtualHostMetadata;
    this.kind = settings.kind;
    this.cluster = settings.cluster;
    this.clusterName = settings.clusterName;
    this.clusterNotFoundStatus = settings.clusterNotFoundStatus;
    this.timeoutMs = settings.timeoutMs;
    this.idleTimeoutMs = settings.idleTimeoutMs;
    this.streamDuration = settings.streamDuration;
    this.grpcTimeout = settings.grpcTimeout;
    this.retryPolicy = settings.retryPolicy;
    this.hedges = settings.hedges;
    this.internalRedirects = settings.internalRedirects;
    this.hashPolicy = settings.hashPolicy;
    this.metadataMatch = settings.metadataMatch;
    this.priority = settings.priority;
    this.autoHostRewrite = settings.autoHostRewrite;
    this.includesRequestAttemptCount = settings.includesRequestAttemptCount;
    this.includesAttemptCountInResponse = settings.includesAttemptCountInResponse;
    this.requestBufferLimit = settings.requestBufferLimit;
    this.rateLimits = settings.rateLimits;
    this.mirrors = settings.mirrors;
    this.tracing = settings.tracing;
    this.directStatus = settings.directStatus;
    this.directBody = settings.directBody;
    this.requestMutations = settings.requestMutations;
    this.responseMutations = settings.responseMutations;
    this.filterConfigs = settings.filterConfigs;
    this.connect = settings.connect;
    this.#upgrades = settings.upgrades;
    this.#appendsForwardedHost = settings.appendsForwardedHost;
    this.#pathRewrite = settings.pathRewrite;
    this.#clusterHost = settings.clusterHost;
    this.#hostRewrite = settings.hostRewrite;
    this.#redirect = settings.redirect;
    this.#redirectsToHttps = settings.redirectsToHttps;
  }

  /** Returns the same route to another cluster. */
  to(cluster: C, clusterName: string): Route<C> {
    return new Route({
      ...this,
      upgrades: this.#upgrades,
      appendsForwardedHost: this.#appendsForwardedHost,
      pathRewrite: this.#pathRewrite,
      clusterHost: undefined,
      hostRewrite: this.#hostRewrite,
      redirect: this.#redirect,
      redirectsToHttps: this.#redirectsToHttps,
      cluster,
      clusterName,
    });
  }

  /**
   * Applies all changes of the route to a request, in Envoy's order: header mutations, then host, then path. Retains the head if response
   * headers are made from it.
   * @param keepsOriginals writes x-envoy-original-host and -path (Router.suppress_envoy_headers is off)
   */
  finalizeRequest(headers: HeaderBlock, info: StreamInfo, keepsOriginals = true): void {
    this.requestMutations?.apply(headers, info);
    this.applyRewrites(headers, keepsOriginals);
    if (this.responseMutations?.needsRequestHeaders === true && !headers.retain()) {
      throw new NoRoomError('no room in the arena for a request head that the response is made from');
    }
  }

  /** Applies only the host and path rewrites. */
  applyRewrites(headers: HeaderBlock, keepsOriginals = true): void {
    this.#clusterHost?.setIn(headers);
    this.#hostRewrite?.apply(headers, keepsOriginals);
    // A CONNECT has no path.
    if (headers.method !== Method.Connect) this.#pathRewrite?.apply(headers, keepsOriginals);
  }

  /**
   * Applies auto_host_rewrite when the upstream host is known. Only the first try records the original host: later tries replace the host
   * of the previous try.
   */
  rewriteToUpstreamHost(headers: HeaderBlock, hostname: string, keepsOriginals = true, isFirstTry = true): void {
    rewriteHost(headers, byteText(hostname), isFirstTry && this.#appendsForwardedHost, isFirstTry && keepsOriginals);
  }

  /** Applies all changes of the route to a response, including local replies. */
  finalizeResponse(headers: HeaderBlock, info: StreamInfo): void {
    this.responseMutations?.applyToResponse(headers, info);
  }

  /** Returns whether the route allows an upgrade type (lower case); undefined leaves it to the connection manager. */
  allowsUpgrade(type: string): boolean | undefined {
    return this.#upgrades?.get(type);
  }

  /** 301, 302, 303, 307 or 308; for RouteKind.Redirect. */
  get redirectStatus(): number {
    return this.#redirect?.status ?? 301;
  }

  /** Returns the Location of a redirect for a request that arrived with `scheme`, one character per byte. */
  redirectLocation(headers: HeaderBlock, scheme: string): string {
    if (this.#redirectsToHttps) return `https://${hostOf(headers)}${headers.pathText()}`;
    return this.#redirect!.location(headers, scheme);
  }
}

const HOST = headerKey('host');

function hostOf(headers: HeaderBlock): string {
  return headers.get(HOST) ?? '';
}
