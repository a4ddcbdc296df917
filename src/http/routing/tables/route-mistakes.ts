// Finds what is wrong with a route configuration, by building the table that workers would build.

import type { RouteConfiguration } from '../../../config/generated/api.js';
import { buildRouteTable, type RouteFilter } from './route-table.js';

/**
 * Gives `report` all that makes a table for these filters impossible: an error, or Mistakes, at a time. `onCluster` is told the name
 * of each cluster that routes send requests to.
 */
export function findRouteMistakes(
  config: RouteConfiguration,
  filters: readonly RouteFilter[],
  report: (mistake: unknown) => void,
  onCluster: (name: string) => void = () => {},
): void {
  const noCluster = (name: string): undefined => {
    onCluster(name);
  };
  try {
    buildRouteTable(config, noCluster, { findCluster: () => undefined, filters, onMistake: report });
  } catch (error) {
    report(error);
  }
}
