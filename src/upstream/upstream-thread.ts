// What a thread gives to its clusters: the transport, timers and numbers that their connections work with.

import type { Random } from '../common/random.js';
import type { Memory } from '../io/memory.js';
import type { Clock } from '../io/time/clock.js';
import type { TimingWheel } from '../io/time/timing-wheel.js';
import type { Transport } from '../io/transport/transport.js';
import type { Runtime } from '../runtime/runtime.js';
import type { ThreadStats } from '../stats/thread-stats.js';
import type { FailedCheckReport } from './health-checks/failed-check-report.js';
import type { LoadBalancingPolicies } from './load-balancer/policy.js';
import type { OutlierReport } from './outliers/outlier-report.js';
import type { SharedWords } from './shared-words.js';

export interface UpstreamThread {
  readonly transport: Transport;
  readonly memory: Memory;
  readonly clock: Clock;
  readonly wheel: TimingWheel;
  readonly random: Random;
  readonly stats: ThreadStats;
  /** Counters that all workers share: circuit breakers, active requests of hosts. */
  readonly words: SharedWords;
  /** Values that can change while the configuration stays: fields with a runtime key read them through handles. */
  readonly runtime: Runtime;
  /** How hosts of clusters can be chosen. */
  readonly policies: LoadBalancingPolicies;
  /** The zone that this server is in; '' when nobody has said. */
  readonly zone: string;
  /** Tells the primary. */
  readonly reportFailedCheck: (report: FailedCheckReport) => void;
  readonly reportOutlier: (report: OutlierReport) => void;
}
