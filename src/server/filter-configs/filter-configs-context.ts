// What discovered configurations of filters need of the server.

import type { StatsStore } from '../../stats/store.js';
import type { ConfigSources } from '../../xds/subscription.js';
import type { SnapshotParts } from '../workers/snapshots.js';
import type { WorkerScopes } from '../workers/worker-scopes.js';

export interface FilterConfigsContext {
  readonly sources: ConfigSources;
  readonly store: StatsStore;
  readonly scopes: WorkerScopes;
  /** Tells all workers at once. */
  publish(parts: SnapshotParts): void;
}
