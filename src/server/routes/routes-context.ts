// What the routes of a server need of it.

import type { PrimaryPort } from '../../extensions/factories.js';
import type { StatsStore } from '../../stats/store.js';
import type { ConfigSources } from '../../xds/subscription.js';
import type { SnapshotParts } from '../workers/snapshots.js';

export interface RoutesContext {
  readonly sources: ConfigSources;
  readonly store: StatsStore;
  /** Why requests cannot go to the cluster of that name; undefined: they can. */
  clusterProblem(name: string): string | undefined;
  /** Tells all workers at once, and those that begin later by PrimaryRouteSet's own snapshots. */
  publish(parts: SnapshotParts): void;
  /** The way to the workers' on-demand filters: ON_DEMAND_PORT. */
  readonly onDemand: PrimaryPort;
}
