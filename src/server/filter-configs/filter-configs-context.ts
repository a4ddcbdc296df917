// The parts of the server that discovered filter configurations use.

import type { StatsStore } from '../../stats/store.js';
import type { ConfigSources } from '../../xds/subscription.js';
import type { SnapshotParts } from '../workers/snapshots.js';
import type { WorkerScopes } from '../workers/worker-scopes.js';

export interface FilterConfigsContext {
  readonly sources: ConfigSources;
  readonly store: StatsStore;
  readonly scopes: WorkerScopes;
  /** Sends the parts to all workers immediately. */
  publish(parts: SnapshotParts): void;
}
