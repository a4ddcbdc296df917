// What a connection manager does with a request: its filters, its routes, and the cluster.

import { StreamInfo } from '../../../access-log/stream/stream-info.js';
import type { ExplainedAction, ExplainedFilter, ExplainedHttp, ExplainQuestion } from '../../../admin/explanation.js';
import { headerKey } from '../../../common/text/header-names.js';
import type { Any, HttpConnectionManager, RouteConfiguration } from '../../../config/generated/api.js';
import { unpack } from '../../../config/schema/any.js';
import { messageNameOf } from '../../../config/schema/message-name.js';
import { requestMatchers } from '../../../extensions/request-matchers.js';
import type { HeaderBlock } from '../../../http/headers/header-block.js';
import { CHOSEN_BY_PLUGIN } from '../../../http/routing/actions/cluster-specifier.js';
import { type Route, RouteKind } from '../../../http/routing/actions/route.js';
import { arrive } from '../../../http/routing/explanation/arrival.js';
import { memoryOfRequest, requestHead } from '../../../http/routing/explanation/request-head.js';
import {
  builtRoute,
  explainRouteInSteps,
  type RouteExplanation,
} from '../../../http/routing/explanation/route-explanation.js';
import { healthFlagsText } from '../../../upstream/hosts/health-flags.js';
import type { PrimaryCluster } from '../../clusters/version/primary-cluster.js';
import type { RunningConfiguration } from '../../running/running-configuration.js';
import { routesOf } from './manager-routes.js';

const MATCHERS = requestMatchers(undefined);

/** `local`: the address of the listener. */
export function* explainHttp(
  running: RunningConfiguration,
  manager: HttpConnectionManager,
  question: ExplainQuestion,
  local: string,
): Generator<void, ExplainedHttp> {
  const scheme = ['x-forwarded-proto', question.isTls ? 'https' : 'http'] as const;
  const { headers, ...request } = question.request;
  const head = requestHead({ ...request, headers: [scheme, ...headers] }, memoryOfRequest());
  const { runtime } = running.runtime;
  const answer = arrive(manager, head, local, runtime);
  if (answer !== undefined) {
    const { details, status } = answer;
    return { filters: filtersOf(manager, [{}]), refusal: { kind: 'answer before routing', status, details } };
  }
  const config = routesOf(running, manager, head);
  if (config === undefined) return { filters: filtersOf(manager, [{}]) };
  const circumstances = { randomValue: question.randomValue, runtime, matchers: MATCHERS };
  const explanation = yield* explainRouteInSteps(config, head, circumstances);
  const { domain, taken, tried, virtualHost } = explanation;
  const route = builtRoute(config, explanation, head, circumstances);
  return {
    filters: filtersOf(manager, levelsOf(config, explanation, route)),
    routes: {
      name: config.name ?? '',
      ...(virtualHost && { virtualHost: { name: virtualHost.name ?? '', domain } }),
      tried,
      action:
        taken === undefined && route === undefined ? { kind: 'not found' } : actionOf(running, route, head, scheme[1]),
    },
  };
}

/** Something with settings for filters. */
interface Level {
  readonly typed_per_filter_config?: Readonly<Record<string, Any>>;
}

/** Returns the levels of the configuration, the most specific first. */
function levelsOf(
  config: RouteConfiguration,
  { taken, virtualHost }: RouteExplanation,
  route: Route<string> | undefined,
): Level[] {
  const clusters = taken?.route?.weighted_clusters?.clusters ?? [];
  const cluster = clusters.find(({ name }) => name === route?.clusterName);
  return [cluster ?? {}, taken ?? {}, virtualHost ?? {}, config];
}

function filtersOf({ http_filters = [] }: HttpConnectionManager, levels: readonly Level[]): ExplainedFilter[] {
  return http_filters.map(({ disabled = false, name = '', typed_config }) => {
    const own = levels.map((level) => level.typed_per_filter_config?.[name]).find((each) => each !== undefined);
    const wrapped = unpack(own, 'envoy.config.route.v3.FilterConfig');
    const isDisabled = own === undefined ? disabled : (wrapped?.disabled ?? false);
    return { name, type: messageNameOf(typed_config?.['@type'] ?? ''), isDisabled };
  });
}

function actionOf(
  running: RunningConfiguration,
  route: Route<string> | undefined,
  head: HeaderBlock,
  scheme: string,
): ExplainedAction {
  if (route === undefined) return { kind: 'not found' };
  if (route.kind === RouteKind.Redirect) {
    return { kind: 'redirect', status: route.redirectStatus, location: text(route.redirectLocation(head, scheme)) };
  }
  if (route.kind === RouteKind.DirectResponse) return { kind: 'direct response', status: route.directStatus };
  route.finalizeRequest(head, new StreamInfo());
  const sent = { authority: text(head.get(HOST) ?? ''), path: text(head.pathText()) };
  if (route.clusterName === CHOSEN_BY_PLUGIN) return { kind: 'forward to the cluster that a plugin chooses', ...sent };
  const cluster = running.clusters.byName.get(route.clusterName);
  return {
    kind: 'forward',
    cluster: route.clusterName,
    missingStatus: route.clusterNotFoundStatus,
    policy: cluster === undefined ? '' : policyOf(cluster),
    hosts:
      cluster &&
      Array.from(cluster.hosts, ({ address, endpoint, healthFlags }) => ({
        address,
        health: healthFlagsText(healthFlags),
        priority: endpoint.priority,
        weight: endpoint.weight,
      })),
    ...sent,
  };
}

/** Returns lb_policy, or the name of the policy in its place. */
function policyOf({ config, spec }: PrimaryCluster): string {
  if (config.load_balancing_policy !== undefined) return spec.loadBalancer.policy;
  return config.lb_policy ?? 'ROUND_ROBIN';
}

const HOST = headerKey('host');

function text(bytes: string): string {
  return Buffer.from(bytes, 'latin1').toString();
}
