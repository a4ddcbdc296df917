// Finds all errors in a route configuration by building the table that workers would build.

import { inBatches, runSync } from '../../../common/time/next-turn.js';
import type { RouteConfiguration } from '../../../config/generated/api.js';
import type { RequestMatchers } from '../matching/request-matchers.js';
import { buildRouteTableInSteps, type RouteFilter } from './route-table.js';

/** Number of routes that are built per step, which takes a few milliseconds. */
const ROUTES_PER_STEP = 256;

/**
 * Calls `report` with each error, or Mistakes, of building a table for these filters, and `onCluster` with the name of each cluster that
 * routes forward to.
 */
export function findRouteMistakes(
  config: RouteConfiguration,
  filters: readonly RouteFilter[],
  report: (mistake: unknown) => void,
  onCluster: (name: string) => void = () => {},
  matchers?: RequestMatchers,
): void {
  runSync(findRouteMistakesInSteps(config, filters, report, onCluster, matchers));
}

/** Does the same as findRouteMistakes() in steps. */
export function* findRouteMistakesInSteps(
  config: RouteConfiguration,
  filters: readonly RouteFilter[],
  report: (mistake: unknown) => void,
  onCluster: (name: string) => void,
  matchers?: RequestMatchers,
): Generator<void, void> {
  const noCluster = (name: string): undefined => {
    onCluster(name);
  };
  try {
    const options = { findCluster: () => undefined, filters, matchers, onMistake: report };
    yield* inBatches(buildRouteTableInSteps(config, noCluster, options), ROUTES_PER_STEP);
  } catch (error) {
    report(error);
  }
}
