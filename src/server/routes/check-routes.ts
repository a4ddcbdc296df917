// Builds a route configuration as workers do, before it is published, so that workers never receive one that they cannot build.

import { BatonError, Mistakes, messageOf } from '../../common/errors/errors.js';
import { runSync } from '../../common/time/next-turn.js';
import type { RouteConfiguration } from '../../config/generated/api.js';
import { parsePath } from '../../config/text/path.js';
import { messageWithoutSecrets } from '../../config/text/secrets.js';
import type { RouteFilters } from '../../extensions/factories.js';
import { requestMatchers } from '../../extensions/request-matchers.js';
import { findRouteMistakesInSteps } from '../../http/routing/tables/route-mistakes.js';
import type { RouteFilter } from '../../http/routing/tables/route-table.js';
import { routeScriptProblems } from './route-scripts.js';
import type { RoutesContext } from './routes-context.js';

const MATCHERS = requestMatchers(undefined);

/** What routes may name. */
export type RouteNames = Pick<RoutesContext, 'clusterProblem' | 'scripts' | 'secrets'>;

/**
 * Returns all problems of `config` for chains with these filters; '' when it can be used.
 * @param validatesClusters default of `validate_clusters`
 */
export function routeProblems(
  config: RouteConfiguration,
  chains: Iterable<RouteFilters>,
  context: RouteNames,
  validatesClusters: boolean,
): string {
  return runSync(routeProblemsInSteps(config, chains, context, validatesClusters));
}

/** Does the same, some routes in each step. */
export function* routeProblemsInSteps(
  config: RouteConfiguration,
  chains: Iterable<RouteFilters>,
  context: RouteNames,
  validatesClusters: boolean,
): Generator<void, string> {
  const all = [...chains];
  const problems = new Set<string>();
  const checksClusters = config.validate_clusters ?? validatesClusters;
  const checkCluster = (name: string): void => {
    const problem = checksClusters ? context.clusterProblem(name) : undefined;
    if (problem !== undefined) problems.add(problem);
  };
  const report = (mistake: unknown): void => {
    for (const error of Mistakes.of(mistake)) problems.add(describeMistake(config, error));
  };
  for (const filters of distinctChains(all))
    yield* findRouteMistakesInSteps(config, filters, report, checkCluster, MATCHERS);
  if (context.scripts !== undefined) {
    const reportScript = (problem: string) => problems.add(messageWithoutSecrets(problem, config));
    yield* routeScriptProblems(config, all, context.scripts, reportScript);
  }
  const secretProblem = problems.size === 0 ? context.secrets.problem(config) : undefined;
  if (secretProblem !== undefined) problems.add(secretProblem);
  return [...problems].map((problem) => describe(config, problem)).join('; ');
}

/** Describes a mistake without secrets: the source of the routes receives the text. */
function describeMistake(config: RouteConfiguration, mistake: unknown): string {
  if (!(mistake instanceof BatonError) || mistake.where === undefined) {
    return messageWithoutSecrets(mistake instanceof BatonError ? mistake.describe() : messageOf(mistake), config);
  }
  const { code, remedy, where } = mistake;
  const message = messageWithoutSecrets(mistake.message, config, parsePath(where));
  return new BatonError(code, message, { where, remedy }).describe();
}

function describe({ name = '' }: RouteConfiguration, problem: string): string {
  return `route configuration '${name}': ${problem}`;
}

/** Chains with the same filters build the same table. Without a chain, one table is built nevertheless. */
function distinctChains(filters: Iterable<RouteFilters>): Iterable<readonly RouteFilter[]> {
  const bySignature = new Map<string, readonly RouteFilter[]>();
  for (const { signature, list } of filters) bySignature.set(signature, list);
  return bySignature.size === 0 ? [[]] : bySignature.values();
}
