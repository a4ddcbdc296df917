// Says which route of a configuration a request takes, and which condition of each route before it does not hold. It decides with
// the rules of the route table, one condition at a time.

import { runSync } from '../../../common/time/next-turn.js';
import { routesOfAction } from '../../../config/fields/host-routes.js';
import type { Any, Route, RouteConfiguration, RouteMatch, VirtualHost } from '../../../config/generated/api.js';
import type { ConnectionSecurity } from '../../../io/tls/connection-security.js';
import { Runtime } from '../../../runtime/runtime.js';
import { type HeaderBlock, Method } from '../../headers/header-block.js';
import { ClusterWeights, givenNumber, numberHeader } from '../actions/cluster-choice.js';
import type { Route as BuiltRoute } from '../actions/route.js';
import { PathRule } from '../matching/path-rule.js';
import type { RequestMatchers } from '../matching/request-matchers.js';
import { DomainTable } from '../tables/domain-table.js';
import { RouteConditions } from '../tables/route-entry.js';
import { buildRouteTableInSteps, hostOf, mustBecomeHttps } from '../tables/route-table.js';

/** What decides besides the head of the request. */
export interface Circumstances {
  /** Decides for fractions and weights, by its remainder; see RouteMatch.runtime_fraction and WeightedCluster. */
  readonly randomValue: bigint;
  /** The fractions that `randomValue` decides, by runtime_key: others take no request. Undefined: all. */
  readonly fraction?: string | undefined;
  /** Undefined: the configured values apply. */
  readonly runtime?: Runtime | undefined;
  /** Compiles matchers of virtual hosts. Absent: they select nothing. */
  readonly matchers?: RequestMatchers | undefined;
  /** The TLS properties of the client's connection; undefined without TLS. */
  readonly security?: ConnectionSecurity | undefined;
}

/** A route that was tried. */
export interface RouteVerdict {
  readonly index: number;
  /** '' without a name. */
  readonly name: string;
  /** The first condition that does not hold; undefined for the route that is taken. */
  readonly failed: string | undefined;
}

export interface RouteExplanation {
  /** Undefined if no domain fits the authority. */
  readonly virtualHost: VirtualHost | undefined;
  /** The domain of the virtual host that fits. */
  readonly domain: string;
  /** The virtual host redirects the request to HTTPS, and tries no route. */
  readonly becomesHttps: boolean;
  /** The routes up to the one that is taken, or all. */
  readonly tried: readonly RouteVerdict[];
  /** Undefined if none fits. */
  readonly taken: Route | undefined;
}

/** @throws BatonError if the configuration cannot be used */
export function explainRoute(
  config: RouteConfiguration,
  head: HeaderBlock,
  circumstances: Circumstances,
): RouteExplanation {
  return runSync(explainRouteInSteps(config, head, circumstances));
}

/** The same, a virtual host or a route in each step. The memory of the head must be used by nothing else. */
export function* explainRouteInSteps(
  config: RouteConfiguration,
  head: HeaderBlock,
  circumstances: Circumstances,
): Generator<void, RouteExplanation> {
  const found = yield* virtualHostOf(config, head);
  const tried: RouteVerdict[] = [];
  if (found === undefined) return { virtualHost: undefined, domain: '', becomesHttps: false, tried, taken: undefined };
  const { domain, host: virtualHost } = found;
  const becomesHttps = mustBecomeHttps(virtualHost.require_tls ?? 'NONE', head);
  const host = { virtualHost, domain, becomesHttps, tried };
  if (becomesHttps) return { ...host, taken: undefined };
  for (const [index, route] of selectedRoutes(virtualHost, head, circumstances).entries()) {
    yield;
    const failed = failedCondition(route.match ?? {}, head, circumstances);
    tried.push({ index, name: route.name ?? '', failed });
    if (failed === undefined) return { ...host, taken: route };
  }
  return { ...host, taken: undefined };
}

/**
 * Returns the route as workers build it, with the name of its cluster; undefined if the explanation has none. Of weighted clusters it is
 * the one that `randomValue` selects. A virtual host that requires TLS has a route that redirects.
 */
export function builtRoute(
  config: RouteConfiguration,
  { taken, virtualHost }: RouteExplanation,
  head: HeaderBlock,
  circumstances: Circumstances,
): BuiltRoute<string> | undefined {
  if (virtualHost === undefined) return undefined;
  const { runtime, security } = circumstances;
  // Only the condition on the path stays, which a prefix_rewrite needs: the others are known to hold.
  const routes =
    taken === undefined ? [] : [{ ...withOneCluster(taken, head, circumstances), match: pathPart(taken.match ?? {}) }];
  const { matcher: _matcher, ...host } = virtualHost;
  const hosts = [{ ...host, domains: ['*'], routes }];
  const steps = buildRouteTableInSteps({ ...config, virtual_hosts: hosts }, (name) => name, {
    ...(runtime && { runtime }),
  });
  return runSync(steps).match(head, 0, security);
}

/** Returns the routes that are tried: all, or those that the matcher of the virtual host selects. */
function selectedRoutes(
  { matcher, routes = [] }: VirtualHost,
  head: HeaderBlock,
  { matchers }: Circumstances,
): readonly Route[] {
  if (matcher === undefined) return routes;
  const routesOf = (action: Any) => routesOfAction(action)?.map(({ route }) => route) ?? [];
  return matchers?.compile(matcher, 'matcher', routesOf).find(head, undefined) ?? [];
}

interface FoundHost {
  readonly domain: string;
  readonly host: VirtualHost;
}

function* virtualHostOf(config: RouteConfiguration, head: HeaderBlock): Generator<void, FoundHost | undefined> {
  const table = new DomainTable<FoundHost>();
  for (const host of config.virtual_hosts ?? []) {
    yield;
    for (const domain of host.domains ?? []) table.add(domain, { domain, host });
  }
  const authority = hostOf(head, config.ignore_port_in_host_matching ?? false);
  if (authority === undefined) return table.isCatchAll ? table.catchAll : undefined;
  return table.find(head.memory.bytes, authority.start, authority.end);
}

function failedCondition(match: RouteMatch, head: HeaderBlock, circumstances: Circumstances): string | undefined {
  const { fraction, randomValue, runtime = new Runtime(), security } = circumstances;
  const path = new PathRule(match, 'match');
  const isOnPath =
    head.method === Method.Connect ? path.isForConnect : path.matches(head.memory, head.pathStart, head.pathEnd);
  if (!isOnPath) return shown(pathPart(match));
  for (const [name, part] of partsOf(match)) {
    const conditions = RouteConditions.of(part, 'match', runtime);
    const isOther = fraction !== undefined && isOfOtherKey(part, fraction);
    if (isOther || conditions?.hold(head, scaled(randomValue, part), security) === false)
      return `${name}: ${shown(conditionIn(part))}`;
  }
  return undefined;
}

const PATH_FIELDS: readonly string[] = [
  'prefix',
  'path',
  'safe_regex',
  'connect_matcher',
  'path_separated_prefix',
  'path_match_policy',
  'case_sensitive',
] satisfies (keyof RouteMatch)[];

/** Returns the condition on the path. */
function pathPart(match: RouteMatch): RouteMatch {
  return Object.fromEntries(Object.entries(match).filter(([field]) => PATH_FIELDS.includes(field)));
}

/** Returns the other conditions, each with its place in the match and as a match of its own. */
function* partsOf(match: RouteMatch): Generator<readonly [place: string, part: RouteMatch]> {
  for (const [field, value] of Object.entries(match)) {
    if (PATH_FIELDS.includes(field)) continue;
    if (!Array.isArray(value)) yield [field, { [field]: value }];
    else for (const [index, item] of value.entries()) yield [`${field}[${index}]`, { [field]: [item] }];
  }
}

/** Returns the condition of a match that has one. */
function conditionIn(part: RouteMatch): unknown {
  const [value] = Object.values(part);
  return Array.isArray(value) ? value[0] : value;
}

/** Returns the random bits for which a fraction decides as for `randomValue` modulo its denominator. */
function scaled(randomValue: bigint, { runtime_fraction: fraction }: RouteMatch): number {
  const buckets = BUCKETS[fraction?.default_value?.denominator ?? 'HUNDRED'] ?? 100;
  return Math.floor((Number(randomValue % BigInt(buckets)) / buckets) * 2 ** 32);
}

function isOfOtherKey({ runtime_fraction: fraction }: RouteMatch, key: string): boolean {
  return fraction !== undefined && fraction.runtime_key !== key;
}

const BUCKETS: Readonly<Record<string, number>> = { HUNDRED: 100, TEN_THOUSAND: 10_000, MILLION: 1_000_000 };

/** Leaves of weighted clusters only the one that the header with the request's number selects, or else `randomValue`. */
function withOneCluster(
  route: Route,
  head: HeaderBlock,
  { randomValue, runtime = new Runtime() }: Circumstances,
): Route {
  const weighted = route.route?.weighted_clusters;
  if (weighted === undefined) return route;
  const weights = new ClusterWeights(weighted, runtime);
  const { total } = weights;
  if (total === 0) return route;
  const key = numberHeader(weighted);
  const number = (key && givenNumber(head, key)) ?? randomValue;
  const chosen = weighted.clusters![weights.indexAt(Number(number % BigInt(total)))]!;
  const { total_weight: _total, runtime_key_prefix: _prefix, ...rest } = weighted;
  const only = { ...rest, clusters: [{ ...chosen, weight: 1 }] };
  return { ...route, route: { ...route.route, weighted_clusters: only } };
}

/** Conditions are shown as they are configured. */
function shown(condition: unknown): string {
  return JSON.stringify(condition);
}
