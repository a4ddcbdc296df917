// The thread on which the health checks of all clusters run.

import type { Random } from '../../../common/random.js';
import type { Timers } from '../../../io/time/timing-wheel.js';
import type { Runtime } from '../../../runtime/runtime.js';
import type { ClusterSpec } from '../../../upstream/cluster-config.js';
import type { Checker, OnChecked } from '../../../upstream/health-checks/checker.js';
import type { HealthCheckSpec } from '../../../upstream/health-checks/health-check-spec.js';
import type { ResolvedEndpoint } from '../../../upstream/hosts/host.js';
import type { RedisResult } from '../redis/redis-client.js';

/** The parameters of a host's checker. */
export interface CheckerRequest {
  readonly spec: HealthCheckSpec;
  readonly cluster: ClusterSpec;
  readonly endpoint: ResolvedEndpoint;
  /** Called when the service name of a host was verified. */
  readonly onVerified: () => void;
  readonly onChecked: OnChecked;
}

/** A command for a Redis server. */
export interface RedisQuestion {
  readonly cluster: ClusterSpec;
  readonly endpoint: ResolvedEndpoint;
  readonly words: readonly string[];
  /** Time for the reply, after the time to connect. */
  readonly timeoutMs: number;
  /** Called once, unless the question is closed. */
  readonly onResult: (result: RedisResult) => void;
}

export interface CheckThread {
  readonly timers: Timers;
  readonly random: Random;
  readonly runtime: Runtime;
  checker(request: CheckerRequest): Checker;
  /** Connects, asks, and disconnects. The caller may close() the question. */
  ask(question: RedisQuestion): { close(): void };
  /** Calls `begin` in a later turn; of checks due at the same time, each turn starts only some. */
  schedule(begin: () => void): void;
}
