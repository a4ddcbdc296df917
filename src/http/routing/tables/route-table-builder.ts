// Builds virtual hosts and routes from a RouteConfiguration, with everything that does not depend on the request computed in advance.

import { BatonError, buildEach } from '../../../common/errors/errors.js';
import { Priority } from '../../../common/priority.js';
import { durationMs } from '../../../common/time/duration.js';
import { routesOfAction } from '../../../config/fields/host-routes.js';
import type {
  RouteAction,
  Route as RouteConfig,
  RouteConfiguration,
  TypedExtensionConfig,
  UriTemplateRewriteConfig,
  VirtualHost,
  VirtualHost_TlsRequirementType,
} from '../../../config/generated/api.js';
import { formatPath, type Path } from '../../../config/text/path.js';
import { Runtime } from '../../../runtime/runtime.js';
import { compileRouteTracing } from '../../tracing/route-tracing.js';
import { ClusterByHeader, type RouteChoice, RoutesByCluster, WeightedChoice } from '../actions/cluster-choice.js';
import { ChoiceBySpecifier, type ClusterSpecifiers, SpecifierTable } from '../actions/cluster-specifier.js';
import { ConnectConfig } from '../actions/connect-config.js';
import { directBody } from '../actions/direct-body.js';
import { HostRewrite, literalHost } from '../actions/host-rewrite.js';
import { InternalRedirects } from '../actions/internal-redirects.js';
import { MetadataMatch } from '../actions/metadata-match.js';
import { MirrorPolicy } from '../actions/mirror-policy.js';
import { PathRewrite } from '../actions/path-rewrite.js';
import { type CompiledLimits, compileRateLimits, RouteRateLimits } from '../actions/rate-limits.js';
import { Redirect } from '../actions/redirect.js';
import { type GrpcTimeout, Route, RouteKind, type RouteSettings } from '../actions/route.js';
import { StreamDuration } from '../actions/stream-duration.js';
import { TemplateRewrite } from '../actions/template-rewrite.js';
import { upgradeTypes } from '../actions/upgrade-types.js';
import { HashPolicy } from '../hashing/hash-policy.js';
import { PathRule } from '../matching/path-rule.js';
import type { RequestMatcher, RequestMatchers } from '../matching/request-matchers.js';
import { RetryPolicy } from '../retries/retry-policy.js';
import { routePrefix } from '../stats/stat-prefixes.js';
import { type CountsOf, VirtualClusters } from '../stats/virtual-clusters.js';
import type { DomainTable } from './domain-table.js';
import type { OnDemandHosts } from './on-demand-hosts.js';
import { RouteConditions, RouteEntry } from './route-entry.js';
import { type LevelSettings, type Place, type RouteFilter, settingsOfLevels } from './route-levels.js';

/** Resolves a cluster's name to the value that routes keep; undefined if the cluster does not exist. May throw to refuse the table. */
export type ClusterResolver<C> = (name: string) => C | undefined;

export interface RouteTableOptions<C = unknown> {
  /**
   * Finds the cluster that a client names (cluster_header). Unlike the table's own resolver, it must keep nothing for unknown names.
   * Absent: the table's own.
   */
  readonly findCluster?: (name: string) => C | undefined;
  /** Compiles matchers of virtual hosts. Absent: they select nothing. */
  readonly matchers?: RequestMatchers | undefined;
  /** Creates cluster specifier plugins. Absent: none runs, and their routes have no cluster. */
  readonly specifiers?: ClusterSpecifiers | undefined;
  /** The filters of the chain, in the order of Route.filterConfigs. */
  readonly filters?: readonly RouteFilter[];
  /** The name of these routes in the process, equal on all workers and for all versions of a configuration. Absent: ''. */
  readonly place?: string;
  /** For configurations with vhds. */
  readonly onDemandHosts?: OnDemandHosts | undefined;
  /** Absent: nothing is counted for virtual clusters and routes. */
  readonly countsOf?: CountsOf;
  /** Absent: the configured values apply. */
  readonly runtime?: Runtime;
  /**
   * Cache of virtual hosts that were built with the same resolver and options, from a configuration that differs only in its virtual hosts.
   * They are reused, and new ones are added.
   */
  readonly built?: WeakMap<VirtualHost, BuiltVirtualHost<C>>;
  /** Called with each error; the other routes are still built, to find theirs. Absent: the first error is thrown. */
  readonly onMistake?: (error: unknown) => void;
}

/** A virtual host as built for tables. */
export interface BuiltVirtualHost<C> {
  /** Selects the routes that are tried, in place of `routes`. */
  readonly matcher: RequestMatcher<readonly RouteEntry<C>[]> | undefined;
  readonly routes: readonly RouteEntry<C>[];
  readonly requireTls: VirtualHost_TlsRequirementType;
  /** The route of requests that must use TLS and do not. */
  readonly httpsRedirect: Route<C>;
}

/** Builds the virtual hosts and adds them under their domains. Yields after each route and each reused virtual host. */
export function* buildVirtualHosts<C, V>(
  config: RouteConfiguration,
  resolveCluster: ClusterResolver<C>,
  options: RouteTableOptions<C>,
  domains: DomainTable<V>,
  make: (built: BuiltVirtualHost<C>) => V,
): Generator<void, void> {
  const names = new Set<string>();
  const specifiers = new SpecifierTable(config, options.specifiers);
  for (const [index, host] of (config.virtual_hosts ?? []).entries()) {
    const where = `virtual_hosts[${index}]`;
    const { name = '' } = host;
    const isNamesake = names.has(name);
    names.add(name);
    const known = options.built?.get(host);
    if (known !== undefined) yield;
    try {
      const value = make(
        known ??
          (yield* new VirtualHostBuilder(config, host, where, resolveCluster, options, specifiers, isNamesake).build()),
      );
      buildEach(host.domains ?? [], (domain, at) => {
        if (domains.add(domain, value)) return;
        throw new BatonError('CONFIG_INVALID', `the domain '${domain}' occurs twice in this route configuration`, {
          where: `${where}.domains[${at}]`,
        });
      });
    } catch (error) {
      if (options.onMistake === undefined) throw error;
      options.onMistake(error);
    }
  }
}

class VirtualHostBuilder<C> {
  readonly #config: RouteConfiguration;
  readonly #host: VirtualHost;
  readonly #where: string;
  readonly #resolveCluster: ClusterResolver<C>;
  readonly #options: RouteTableOptions<C>;
  readonly #specifiers: SpecifierTable;
  readonly #runtime: Runtime;
  readonly #retryPolicy: RetryPolicy | undefined;
  readonly #rateLimits: CompiledLimits;
  readonly #countsOf: CountsOf;
  readonly #virtualClusters: VirtualClusters | undefined;
  /** A host before it has the same name. */
  readonly #isNamesake: boolean;

  constructor(
    config: RouteConfiguration,
    host: VirtualHost,
    where: string,
    resolveCluster: ClusterResolver<C>,
    options: RouteTableOptions<C>,
    specifiers: SpecifierTable,
    isNamesake: boolean,
  ) {
    this.#isNamesake = isNamesake;
    this.#config = config;
    this.#host = host;
    this.#where = where;
    this.#resolveCluster = resolveCluster;
    this.#options = options;
    this.#specifiers = specifiers;
    this.#runtime = options.runtime ?? new Runtime();
    this.#retryPolicy =
      host.retry_policy === undefined
        ? undefined
        : new RetryPolicy(host.retry_policy, `${where}.retry_policy`, this.#runtime);
    this.#rateLimits = compileRateLimits(host.rate_limits, `${where}.rate_limits`);
    this.#countsOf = options.countsOf ?? (() => undefined);
    const { name = '', virtual_clusters: clusters } = host;
    this.#virtualClusters = VirtualClusters.of(name, clusters, `${where}.virtual_clusters`, this.#countsOf);
  }

  *build(): Generator<void, BuiltVirtualHost<C>> {
    const routes: RouteEntry<C>[] = [];
    for (const [index, route] of (this.#host.routes ?? []).entries()) {
      const entry = this.#entryOrMistake(route, `${this.#where}.routes[${index}]`);
      if (entry !== undefined) routes.push(entry);
      yield;
    }
    const built = {
      matcher: this.#matcher(),
      routes,
      requireTls: this.#host.require_tls ?? 'NONE',
      httpsRedirect: new Route<C>({
        ...this.#settings({}, []),
        kind: RouteKind.Redirect,
        redirectsToHttps: true,
        requestMutations: undefined,
        responseMutations: undefined,
      }),
    };
    this.#options.built?.set(this.#host, built);
    return built;
  }

  #matcher(): RequestMatcher<readonly RouteEntry<C>[]> | undefined {
    const { matcher, routes = [] } = this.#host;
    if (matcher === undefined) return undefined;
    const where = `${this.#where}.matcher`;
    if (routes.length > 0)
      throw new BatonError('CONFIG_INVALID', 'cannot set both matcher and routes on virtual host', { where });
    const { matchers = NO_MATCHERS } = this.#options;
    return matchers.compile(matcher, where, (action, at) => {
      const found = routesOfAction(action);
      if (found === undefined)
        throw new BatonError('CONFIG_INVALID', 'the action is a Route or a RouteList', { where: at });
      return found.flatMap(({ path, route }) => this.#entryOrMistake(route, placeWithin(at, path)) ?? []);
    });
  }

  #entryOrMistake(route: RouteConfig, where: string): RouteEntry<C> | undefined {
    const { onMistake } = this.#options;
    if (onMistake === undefined) return this.#entry(route, where);
    try {
      return this.#entry(route, where);
    } catch (error) {
      onMistake(error);
      return undefined;
    }
  }

  #entry(route: RouteConfig, where: string): RouteEntry<C> {
    const match = route.match ?? {};
    const path = new PathRule(match, `${where}.match`);
    return new RouteEntry(
      path,
      RouteConditions.of(match, `${where}.match`, this.#runtime),
      this.#target(route, path, where),
    );
  }

  #target(route: RouteConfig, path: PathRule, where: string): Route<C> | RouteChoice<C> {
    const settings = this.#settings(route, [{ level: route, where }]);
    settings.tracing = compileRouteTracing(route, where, this.#runtime);
    if (route.route !== undefined) return this.#forward(route, route.route, settings, path, where);
    if (route.redirect !== undefined) {
      if (route.redirect.prefix_rewrite) checkPrefixRewrite(path, `${where}.redirect.prefix_rewrite`);
      const redirect = new Redirect(route.redirect, path, `${where}.redirect`);
      return new Route({ ...settings, kind: RouteKind.Redirect, redirect });
    }
    if (route.direct_response !== undefined) {
      const limit = this.#config.max_direct_response_body_size_bytes ?? DEFAULT_DIRECT_BODY_LIMIT;
      const bodyWhere = `${where}.direct_response.body`;
      return new Route({
        ...settings,
        kind: RouteKind.DirectResponse,
        directStatus: route.direct_response.status ?? 200,
        directBody: directBody(route.direct_response.body, limit, bodyWhere),
      });
    }
    throw new BatonError('CONFIG_INVALID', 'a route needs route, redirect or direct_response', { where });
  }

  #forward(
    route: RouteConfig,
    action: RouteAction,
    common: RouteSettings<C>,
    path: PathRule,
    where: string,
  ): Route<C> | RouteChoice<C> {
    const at = `${where}.route`;
    const settings: RouteSettings<C> = {
      ...common,
      kind: RouteKind.Forward,
      clusterNotFoundStatus: NOT_FOUND_STATUS[action.cluster_not_found_response_code ?? ''] ?? 503,
      // As in Envoy, a route with max_stream_duration has no timeout, even if it configures one.
      timeoutMs: action.max_stream_duration === undefined ? durationMs(action.timeout, DEFAULT_TIMEOUT_MS) : 0,
      idleTimeoutMs: durationMs(action.idle_timeout, undefined),
      streamDuration: action.max_stream_duration && new StreamDuration(action.max_stream_duration),
      grpcTimeout: grpcTimeoutOf(action),
      retryPolicy:
        action.retry_policy === undefined
          ? this.#retryPolicy
          : new RetryPolicy(action.retry_policy, `${at}.retry_policy`, this.#runtime),
      hedges: (action.hedge_policy ?? this.#host.hedge_policy)?.hedge_on_per_try_timeout ?? false,
      internalRedirects: InternalRedirects.of(action, at),
      hashPolicy: HashPolicy.of(action.hash_policy, `${at}.hash_policy`),
      metadataMatch: MetadataMatch.of(action.metadata_match),
      upgrades: upgradesOf(action, at),
      connect: ConnectConfig.of(action, `${at}.upgrade_configs`),
      priority: action.priority === 'HIGH' ? Priority.High : Priority.Default,
      autoHostRewrite: action.auto_host_rewrite ?? false,
      appendsForwardedHost: action.append_x_forwarded_host ?? false,
      pathRewrite: pathRewriteOf(action, path, at),
      hostRewrite: HostRewrite.of(action, at),
      mirrors: this.#mirrors(action, at),
      rateLimits: RouteRateLimits.of(
        compileRateLimits(action.rate_limits, `${at}.rate_limits`),
        this.#rateLimits,
        action.include_vh_rate_limits,
      ),
    };
    if (action.cluster !== undefined) return this.#toCluster(settings, action.cluster);
    if (action.cluster_header !== undefined)
      return new ClusterByHeader(action.cluster_header, `${at}.cluster_header`, this.#routesByCluster(settings));
    if (action.cluster_specifier_plugin !== undefined || action.inline_cluster_specifier_plugin !== undefined)
      return new ChoiceBySpecifier(this.#specifiers.of(action, at), this.#routesByCluster(settings));
    if (action.weighted_clusters !== undefined) {
      return new WeightedChoice(
        action.weighted_clusters,
        `${at}.weighted_clusters`,
        this.#runtime,
        settings.hashPolicy,
        (weight, weightWhere) => {
          const places = [
            { level: weight, where: weightWhere, isWeightedCluster: true },
            { level: route, where },
          ];
          return this.#toCluster(
            {
              ...settings,
              ...this.#levels(places),
              clusterHost: literalHost(weight.host_rewrite_literal),
              metadataMatch: MetadataMatch.of(weight.metadata_match, settings.metadataMatch),
            },
            weight.name ?? '',
          );
        },
      );
    }
    const message = 'a route action needs cluster, cluster_header, weighted_clusters or a cluster specifier plugin';
    throw new BatonError('CONFIG_INVALID', message, { where: at });
  }

  #routesByCluster(settings: RouteSettings<C>): RoutesByCluster<C> {
    const find = this.#options.findCluster ?? this.#resolveCluster;
    return new RoutesByCluster((name) => new Route({ ...settings, clusterName: name, cluster: find(name) }));
  }

  /** The most specific level with policies applies. */
  #mirrors(action: RouteAction, at: string): readonly MirrorPolicy<C>[] | undefined {
    const levels = [
      [action.request_mirror_policies, `${at}.`],
      [this.#host.request_mirror_policies, `${this.#where}.`],
      [this.#config.request_mirror_policies, ''],
    ] as const;
    const found = levels.find(([policies]) => policies !== undefined && policies.length > 0);
    if (found === undefined) return undefined;
    const [policies = [], where] = found;
    const resolve = this.#resolveCluster;
    const find = this.#options.findCluster ?? resolve;
    return buildEach(
      policies,
      (policy, index) =>
        new MirrorPolicy(policy, `${where}request_mirror_policies[${index}]`, this.#runtime, resolve, find),
    );
  }

  #toCluster(settings: RouteSettings<C>, name: string): Route<C> {
    return new Route({ ...settings, clusterName: name, cluster: this.#resolveCluster(name) });
  }

  #settings(route: RouteConfig, places: readonly Place[]): RouteSettings<C> {
    const host = this.#host;
    return {
      name: route.name ?? '',
      virtualHostName: host.name ?? '',
      virtualClusters: this.#virtualClusters,
      counts: route.stat_prefix ? this.#countsOf(routePrefix(host.name ?? '', route.stat_prefix)) : undefined,
      metadata: route.metadata,
      virtualHostMetadata: host.metadata,
      kind: RouteKind.Forward,
      cluster: undefined,
      clusterName: '',
      clusterNotFoundStatus: 503,
      timeoutMs: 0,
      idleTimeoutMs: undefined,
      streamDuration: undefined,
      grpcTimeout: undefined,
      retryPolicy: undefined,
      hedges: false,
      internalRedirects: undefined,
      hashPolicy: undefined,
      metadataMatch: undefined,
      upgrades: undefined,
      connect: undefined,
      priority: Priority.Default,
      autoHostRewrite: false,
      appendsForwardedHost: false,
      includesRequestAttemptCount: host.include_request_attempt_count ?? false,
      includesAttemptCountInResponse: host.include_attempt_count_in_response ?? false,
      requestBufferLimit: requestBufferLimit(route, host),
      rateLimits: undefined,
      mirrors: undefined,
      tracing: undefined,
      pathRewrite: undefined,
      clusterHost: undefined,
      hostRewrite: undefined,
      redirect: undefined,
      redirectsToHttps: false,
      directStatus: 0,
      directBody: NO_BYTES,
      ...this.#levels(places),
    };
  }

  /** Combines the settings of `places` (the most specific first), the virtual host and the route configuration. */
  #levels(places: readonly Place[]): LevelSettings {
    const all = [...places, { level: this.#host, where: this.#where }, { level: this.#config, where: '' }];
    const specificWins = this.#config.most_specific_header_mutations_wins ?? false;
    return settingsOfLevels(all, specificWins, this.#options.filters ?? [], this.#runtime, (where) =>
      this.#place(where),
    );
  }

  /**
   * Returns the process-wide name of `where`. Virtual hosts are named instead of numbered, because others may be added or removed before
   * them. As in Envoy several may have one name: those after the first one are named by their first domain too.
   */
  #place(where: string): string {
    const { place = '' } = this.#options;
    const isOfHost = where.startsWith(this.#where);
    return `${place} ${isOfHost ? `${this.#hostPlace}${where.slice(this.#where.length)}` : where}`;
  }

  get #hostPlace(): string {
    const { domains, name = '' } = this.#host;
    return this.#isNamesake ? `'${name}' ${domains?.[0] ?? ''}` : `'${name}'`;
  }
}

/** Where no request is routed. */
const NO_MATCHERS: RequestMatchers = { compile: () => ({ find: () => undefined }) };

function placeWithin(where: string, path: Path): string {
  return path.length === 0 ? where : `${where}.${formatPath(path)}`;
}

const DEFAULT_TIMEOUT_MS = 15_000;
const DEFAULT_DIRECT_BODY_LIMIT = 4096;
const NO_BYTES = new Uint8Array(0);

const NOT_FOUND_STATUS: Readonly<Record<string, number>> = {
  SERVICE_UNAVAILABLE: 503,
  NOT_FOUND: 404,
  INTERNAL_SERVER_ERROR: 500,
};

/** Returns the configured buffer limit for a request body. The newer fields take precedence over the deprecated ones, at either level. */
function requestBufferLimit(route: RouteConfig, host: VirtualHost): number | undefined {
  const limit = route.request_body_buffer_limit ?? host.request_body_buffer_limit;
  if (limit !== undefined) return Number(limit);
  return route.per_request_buffer_limit_bytes ?? host.per_request_buffer_limit_bytes;
}

function pathRewriteOf(action: RouteAction, path: PathRule, where: string): PathRewrite | TemplateRewrite | undefined {
  const { prefix_rewrite: prefix, regex_rewrite: regex, path_rewrite_policy: policy } = action;
  if ([prefix, regex, policy].filter(Boolean).length > 1) {
    const message = 'prefix_rewrite, regex_rewrite and path_rewrite_policy exclude each other';
    throw new BatonError('CONFIG_INVALID', message, { where });
  }
  if (policy !== undefined) return templateRewriteOf(policy, path, `${where}.path_rewrite_policy`);
  if (!prefix && regex === undefined) return undefined;
  if (prefix) checkPrefixRewrite(path, `${where}.prefix_rewrite`);
  checkTarget(prefix, `${where}.prefix_rewrite`);
  checkTarget(regex?.substitution, `${where}.regex_rewrite.substitution`);
  return new PathRewrite(path, prefix, regex, `${where}.regex_rewrite`);
}

function templateRewriteOf(policy: TypedExtensionConfig, { template }: PathRule, where: string): TemplateRewrite {
  if (template === undefined) {
    const remedy = 'match the path with path_match_policy';
    throw new BatonError('CONFIG_INVALID', 'the route has no path template', { where, remedy });
  }
  const { path_template_rewrite: text = '' } = policy.typed_config as unknown as UriTemplateRewriteConfig;
  return new TemplateRewrite(template, text, `${where}.typed_config.path_template_rewrite`);
}

/** A path template has no prefix to replace. */
function checkPrefixRewrite({ template }: PathRule, where: string): void {
  if (template === undefined) return;
  const remedy = 'use path_rewrite_policy or regex_rewrite';
  throw new BatonError('CONFIG_INVALID', 'it cannot be used with path_match_policy', { where, remedy });
}

/** Refuses text that would end the request line, or that the host would cut off. */
function checkTarget(text: string | undefined, where: string): void {
  if (text === undefined || !/[\0-\x20\x7f#]/.test(text)) return;
  const remedy = 'write it in escaped form, such as %20 for a space';
  const message = `'${text}' has a character that a request path cannot have: a space, a control character or '#'`;
  throw new BatonError('CONFIG_INVALID', message, { where, remedy });
}

/** Reads the deprecated fields, which apply to routes without max_stream_duration. */
function grpcTimeoutOf(action: RouteAction): GrpcTimeout | undefined {
  const maxMs = durationMs(action.max_grpc_timeout, undefined);
  if (maxMs === undefined || action.max_stream_duration !== undefined) return undefined;
  return { maxMs, offsetMs: durationMs(action.grpc_timeout_offset, 0) };
}

function upgradesOf(action: RouteAction, where: string): ReadonlyMap<string, boolean> | undefined {
  const upgrades = upgradeTypes(action.upgrade_configs, `${where}.upgrade_configs`);
  return upgrades.size === 0 ? undefined : upgrades;
}
