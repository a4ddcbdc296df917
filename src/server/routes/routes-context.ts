// The parts of the server that routes use.

import type { PrimaryPort } from '../../extensions/factories.js';
import type { StatsStore } from '../../stats/store.js';
import type { ConfigSources } from '../../xds/subscription.js';
import type { SnapshotParts } from '../workers/snapshots.js';
import type { WorkerScopes } from '../workers/worker-scopes.js';
import type { RouteScripts } from './route-scripts.js';
import type { RouteSecrets } from './route-secrets.js';

export interface RoutesContext {
  readonly sources: ConfigSources;
  readonly store: StatsStore;
  readonly scopes: WorkerScopes;
  /** Returns why routes cannot use the cluster `name`; undefined when they can. */
  clusterProblem(name: string): string | undefined;
  readonly secrets: RouteSecrets;
  /** The verdicts of modules on configurations of routes. Undefined: no module is registered. */
  readonly scripts: RouteScripts | undefined;
  /** Publishes to all running workers. Starting workers receive PrimaryRouteSet's snapshots. */
  publish(parts: SnapshotParts): void;
  /** Calls `callback` once, when all workers have applied what was published. */
  whenApplied(callback: () => void): void;
  /** The port of the workers' on-demand filters: ON_DEMAND_PORT. */
  readonly onDemand: PrimaryPort;
}
