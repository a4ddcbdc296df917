// The primary's message about one cluster: plain data, replaced as a whole whenever any part changes.

import type { ScopeRef } from '../stats/thread-stats.js';
import type { AssignmentPolicy } from './assignment-policy.js';
import type { ClusterSpec } from './cluster-config.js';
import type { HostSetData } from './hosts/host-set.js';
import type { Shards } from './hosts/shards.js';

export interface ClusterSnapshot {
  readonly spec: ClusterSpec;
  /** Changes with the configuration; updates of the hosts keep it. */
  readonly specVersion: number;
  /** The cluster's block in the shared words. */
  readonly block: number;
  /** cluster.<name>. */
  readonly scope: ScopeRef;
  /** cluster.<name>.http2, if its hosts speak HTTP/2. */
  readonly http2Scope?: ScopeRef | undefined;
  /** TimeoutBudgetStats and MessageSizeStats, if the cluster tracks them. */
  readonly budgetScope?: ScopeRef | undefined;
  readonly sizeScope?: ScopeRef | undefined;
  /** The scopes of its upstream HTTP filters, by statScopeKey(). */
  readonly filterScopes?: Readonly<Record<string, ScopeRef>> | undefined;
  readonly hosts: HostSetData;
  /** Of a Redis cluster with slots, by indexes of `hosts`; absent: it has none. */
  readonly shards?: Shards<number> | undefined;
  /** Of the load assignment. */
  readonly policy: AssignmentPolicy;
  /** Changes when hosts are added or removed. */
  readonly membershipVersion: number;
}
