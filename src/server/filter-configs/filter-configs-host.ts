// What discovered configurations of filters need of the server.

import type { StatsStore } from '../../stats/store.js';
import type { ScopeRef } from '../../stats/thread-stats.js';
import type { ConfigSources } from '../../xds/subscription.js';
import type { SnapshotParts } from '../workers/snapshots.js';

export interface FilterConfigsHost {
  readonly sources: ConfigSources;
  readonly store: StatsStore;
  /** Scopes by prefix, as workers that begin are told of them. */
  readonly scopes: Record<string, ScopeRef>;
  /** Tells all workers at once. */
  publish(parts: SnapshotParts): void;
}
