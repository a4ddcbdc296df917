// Runs a route test: finds the route of its request, and compares what the test expects.

import { isDeepStrictEqual } from 'node:util';
import { StreamInfo } from '../../access-log/stream/stream-info.js';
import { BatonError, messageOf } from '../../common/errors/errors.js';
import { headerKey } from '../../common/text/header-names.js';
import type {
  HeaderMatcher,
  HeaderValue,
  RouteTest,
  RouteTest_Expectation,
  RouteTest_Input,
  VirtualHost,
} from '../../config/generated/api.js';
import { requestMatchers } from '../../extensions/request-matchers.js';
import { type HeaderBlock, headerBlocks } from '../../http/headers/header-block.js';
import { type Route, RouteKind } from '../../http/routing/actions/route.js';
import { arrive } from '../../http/routing/explanation/arrival.js';
import {
  addHeaders,
  type DescribedRequest,
  memoryOfRequest,
  requestHead,
} from '../../http/routing/explanation/request-head.js';
import {
  builtRoute,
  type Circumstances,
  explainRoute,
  type RouteExplanation,
} from '../../http/routing/explanation/route-explanation.js';
import { compileHeaderRules, matchesAll } from '../../http/routing/matching/header-rule.js';
import type { ListenerRoutes } from './route-configurations.js';

export interface RouteTestResult {
  readonly name: string;
  /** Empty if the test passed. */
  readonly mistakes: readonly string[];
  /** How the route was found; empty if the test could not be run. */
  readonly explanation: readonly string[];
}

const MATCHERS = requestMatchers(undefined);

export function runRouteTest(test: RouteTest, candidates: readonly ListenerRoutes[]): RouteTestResult {
  const name = test.test_name ?? '';
  try {
    const { local, manager, routes } = choose(test, candidates);
    const input = test.input ?? {};
    const head = requestHead(requestOf(input), memoryOfRequest());
    const answer = arrive(manager, head, local);
    if (answer !== undefined)
      return {
        name,
        mistakes: [`it gets no route: the answer is ${answer.status} (${answer.details})`],
        explanation: [],
      };
    const circumstances = {
      randomValue: BigInt(input.random_value ?? 0),
      fraction: input.runtime ?? '',
      matchers: MATCHERS,
    };
    const explanation = explainRoute(routes, head, circumstances);
    const virtualCluster = virtualClusterOf(explanation.virtualHost, head);
    const route = builtRoute(routes, explanation, head, circumstances satisfies Circumstances);
    const found = new Found(explanation, route, virtualCluster, head, input);
    return { name, mistakes: [...found.mistakes(test.validate ?? {})], explanation: [...linesOf(explanation)] };
  } catch (error) {
    if (!(error instanceof BatonError) && !(error instanceof RangeError)) throw error;
    return { name, mistakes: [messageOf(error)], explanation: [] };
  }
}

/** Returns the only route configuration that a test may mean. */
function choose(
  { listener = '', route_config: name = '' }: RouteTest,
  candidates: readonly ListenerRoutes[],
): ListenerRoutes {
  const isMeant = (each: ListenerRoutes) =>
    (listener === '' || each.listener === listener) && (name === '' || each.routes.name === name);
  const [found, ...rest] = candidates.filter(isMeant);
  // Filter chains of one listener, for HTTP and HTTPS, often have the same routes.
  const others = rest.filter(
    (each) => each.listener !== found?.listener || !isDeepStrictEqual(each.routes, found.routes),
  );
  const shown = candidates.map((each) => `'${each.routes.name ?? ''}' of listener '${each.listener}'`).join(', ');
  const refuse = (what: string) => new BatonError('CONFIG_INVALID', `${what}; there are ${shown || 'none'}`);
  if (found === undefined) throw refuse('no route configuration has these names');
  if (others.length > 0) throw refuse('several route configurations fit; name one by route_config and listener');
  return found;
}

function requestOf({
  additional_request_headers: headers = [],
  authority = '',
  internal,
  method = '',
  path = '',
  ssl,
}: RouteTest_Input): DescribedRequest {
  const scheme = ['x-forwarded-proto', ssl === true ? 'https' : 'http'] as const;
  return { authority, method, path, headers: [scheme, ...(internal === true ? [INTERNAL] : []), ...pairsOf(headers)] };
}

function pairsOf(headers: readonly HeaderValue[] = []): DescribedRequest['headers'] {
  return headers.map(({ key = '', value = '' }) => [key, value]);
}

const INTERNAL = ['x-envoy-internal', 'true'] as const;

/** Decided before the route changes the request. */
function virtualClusterOf(host: VirtualHost | undefined, head: HeaderBlock): string {
  const clusters = host?.virtual_clusters ?? [];
  const found = clusters.find(({ headers = [] }) => matchesAll(compileHeaderRules(headers, 'headers') ?? [], head));
  return found?.name ?? (clusters.length > 0 ? 'other' : '');
}

/** What a request meets, beside what a test expects. */
class Found {
  readonly #explanation: RouteExplanation;
  readonly #route: Route<string> | undefined;
  readonly #virtualCluster: string;
  readonly #request: HeaderBlock;
  readonly #input: RouteTest_Input;
  readonly #location: string;

  constructor(
    explanation: RouteExplanation,
    route: Route<string> | undefined,
    virtualCluster: string,
    request: HeaderBlock,
    input: RouteTest_Input,
  ) {
    this.#explanation = explanation;
    this.#route = route;
    this.#virtualCluster = virtualCluster;
    this.#request = request;
    this.#input = input;
    const isRedirect = route?.kind === RouteKind.Redirect;
    this.#location = isRedirect ? route.redirectLocation(request, input.ssl === true ? 'https' : 'http') : '';
    if (route?.kind === RouteKind.Forward) route.finalizeRequest(request, new StreamInfo());
  }

  *mistakes(expected: RouteTest_Expectation): Generator<string> {
    if (Object.keys(expected).length === 0) yield 'validate: it expects nothing, so the test cannot fail';
    for (const [field, found] of Object.entries(this.#texts())) {
      const wanted = expected[field as TextField];
      if (wanted !== undefined && wanted !== found) yield `${field}: expected '${wanted}', found '${found}'`;
    }
    const { status } = this;
    if (expected.status !== undefined && expected.status !== status)
      yield `status: expected ${expected.status}, found ${status === 0 ? 'none' : status}`;
    yield* unmatched('request_header_matches', expected.request_header_matches, this.#request);
    if ((expected.response_header_matches?.length ?? 0) > 0)
      yield* unmatched('response_header_matches', expected.response_header_matches, this.#response());
  }

  /** The status of a redirect or a direct response; otherwise 0. */
  get status(): number {
    if (this.#route?.kind === RouteKind.Redirect) return this.#route.redirectStatus;
    return this.#route?.kind === RouteKind.DirectResponse ? this.#route.directStatus : 0;
  }

  #texts(): Readonly<Record<TextField, string>> {
    const { taken, virtualHost } = this.#explanation;
    const isForwarded = this.#route?.kind === RouteKind.Forward;
    return {
      virtual_host_name: virtualHost?.name ?? '',
      route_name: taken?.name ?? '',
      cluster_name: isForwarded ? this.#route!.clusterName : '',
      virtual_cluster_name: this.#virtualCluster,
      host_rewrite: isForwarded ? textOf(this.#request, ':authority') : '',
      path_rewrite: isForwarded ? textOf(this.#request, ':path') : '',
      path_redirect: Buffer.from(this.#location, 'latin1').toString(),
    };
  }

  #response(): HeaderBlock {
    const { memory } = this.#request;
    const head = headerBlocks(memory).take();
    head.setStatus(this.status || 200);
    addHeaders(head, pairsOf(this.#input.additional_response_headers));
    this.#route?.finalizeResponse(head, new StreamInfo());
    return head;
  }
}

type TextField = Exclude<keyof RouteTest_Expectation, 'request_header_matches' | 'response_header_matches' | 'status'>;

function* unmatched(field: string, matchers: readonly HeaderMatcher[] = [], head: HeaderBlock): Generator<string> {
  for (const [index, matcher] of matchers.entries()) {
    const rules = compileHeaderRules([matcher], field) ?? [];
    if (matchesAll(rules, head)) continue;
    yield `${field}[${index}]: no match for ${JSON.stringify(matcher)}, found '${textOf(head, matcher.name ?? '')}'`;
  }
}

/** Returns a header, or a pseudo-header of a request; '' without it. */
function textOf(head: HeaderBlock, name: string): string {
  const bytes =
    name === ':path' ? head.pathText() : head.get(headerKey(name === ':authority' ? 'host' : name.toLowerCase()));
  return Buffer.from(bytes ?? '', 'latin1').toString();
}

function* linesOf({ becomesHttps, domain, tried, virtualHost }: RouteExplanation): Generator<string> {
  if (virtualHost === undefined) return yield 'no virtual host has a domain for this authority';
  yield `virtual host '${virtualHost.name}', by the domain '${domain}'`;
  if (becomesHttps) yield 'its require_tls redirects the request to HTTPS';
  for (const { failed, index, name } of tried) {
    const route = name === '' ? `route ${index}` : `route ${index} '${name}'`;
    yield failed === undefined ? `${route} is taken` : `${route} does not match: ${failed}`;
  }
}
