// The parts of the server that routes use.

import type { PrimaryPort } from '../../extensions/factories.js';
import type { StatsStore } from '../../stats/store.js';
import type { ConfigSources } from '../../xds/subscription.js';
import type { SnapshotParts } from '../workers/snapshots.js';

export interface RoutesContext {
  readonly sources: ConfigSources;
  readonly store: StatsStore;
  /** Returns why routes cannot use the cluster `name`; undefined when they can. */
  clusterProblem(name: string): string | undefined;
  /** Publishes to all running workers. Starting workers receive PrimaryRouteSet's snapshots. */
  publish(parts: SnapshotParts): void;
  /** The port of the workers' on-demand filters: ON_DEMAND_PORT. */
  readonly onDemand: PrimaryPort;
}
