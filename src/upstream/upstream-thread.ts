// The context that a thread provides to its clusters: transport, timers, stats and shared counts.

import type { Random } from '../common/random.js';
import type { Memory } from '../io/memory.js';
import type { Clock } from '../io/time/clock.js';
import type { TimingWheel } from '../io/time/timing-wheel.js';
import type { Transport } from '../io/transport/transport.js';
import type { ThreadOverload } from '../runtime/overload/thread-overload.js';
import type { Runtime } from '../runtime/runtime.js';
import type { ThreadStats } from '../stats/thread-stats.js';
import type { EventReport } from './event-report.js';
import type { FailedCheckReport } from './health-checks/failed-check-report.js';
import type { Locality } from './hosts/locality.js';
import type { InternalConnections } from './internal-connections.js';
import { LocalCluster } from './load-balancer/local-cluster.js';
import type { LoadBalancingPolicies } from './load-balancer/policy.js';
import type { OutlierReport } from './outliers/outlier-report.js';
import type { HostRequest } from './requested-hosts/host-request.js';
import type { ServerPlace } from './server-place.js';
import type { SharedWords } from './shared-words.js';

export interface UpstreamThread {
  readonly transport: Transport;
  readonly memory: Memory;
  readonly clock: Clock;
  readonly wheel: TimingWheel;
  readonly random: Random;
  readonly stats: ThreadStats;
  /** Counts that all workers share: circuit breakers, active requests of hosts. */
  readonly words: SharedWords;
  /** Runtime values may change while the configuration stays the same: fields with a runtime key read them through handles. */
  readonly runtime: Runtime;
  /** The load-balancing policies of this build. */
  readonly policies: LoadBalancingPolicies;
  /** Undefined on the primary, and without actions or load shed points of the overload manager. */
  readonly overload?: ThreadOverload | undefined;
  /** Undefined on the primary: it serves no listeners. */
  readonly internal?: InternalConnections | undefined;
  /** The locality of this server; undefined: none is configured. */
  readonly locality: Locality | undefined;
  /** Undefined: none is configured, and requests are not routed by zone. */
  readonly localCluster: LocalCluster | undefined;
  /** Reports to the primary. */
  readonly reportFailedCheck: (report: FailedCheckReport) => void;
  readonly reportOutlier: (report: OutlierReport) => void;
  readonly reportEvents: (report: EventReport) => void;
  readonly requestHost: (request: HostRequest) => void;
}

export function placeOfThread({
  localCluster: name,
  locality,
}: ServerPlace): Pick<UpstreamThread, 'locality' | 'localCluster'> {
  return { locality, localCluster: name === '' ? undefined : new LocalCluster(name, locality) };
}
