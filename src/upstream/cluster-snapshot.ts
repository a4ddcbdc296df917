// What the primary sends of a cluster: plain data, replaced as a whole whenever something in it changes.

import type { ScopeRef } from '../stats/thread-stats.js';
import type { ClusterSpec } from './cluster-config.js';
import type { HostSetData } from './hosts/host-set.js';

export interface ClusterSnapshot {
  readonly spec: ClusterSpec;
  /** Differs when the configuration differs; host lists come and go under the same number. */
  readonly specVersion: number;
  /** Its block in the shared words. */
  readonly block: number;
  /** cluster.<name>. */
  readonly scope: ScopeRef;
  readonly hosts: HostSetData;
  /** overprovisioning_factor of the load assignment, in percent. */
  readonly overprovisioning: number;
  /** Differs when hosts have come or gone. */
  readonly membershipVersion: number;
}
