// What checks the hosts of all clusters have in common: the thread that they run on.

import type { Random } from '../../../common/random.js';
import type { Timers } from '../../../io/time/timing-wheel.js';
import type { Runtime } from '../../../runtime/runtime.js';
import type { ClusterSpec } from '../../../upstream/cluster-config.js';
import type { Checker, OnChecked } from '../../../upstream/health-checks/checker.js';
import type { HealthCheckSpec } from '../../../upstream/health-checks/health-check-spec.js';
import type { ResolvedEndpoint } from '../../../upstream/hosts/host.js';

/** What the checks of a host are made of. */
export interface CheckerRequest {
  readonly spec: HealthCheckSpec;
  readonly cluster: ClusterSpec;
  readonly endpoint: ResolvedEndpoint;
  /** The service that a host says it is of was looked at. */
  readonly onVerified: () => void;
  readonly onChecked: OnChecked;
}

export interface CheckThread {
  readonly timers: Timers;
  readonly random: Random;
  readonly runtime: Runtime;
  checker(request: CheckerRequest): Checker;
  /** Calls that back soon: of checks that are due at once only some begin in a turn. */
  soon(begin: () => void): void;
}
