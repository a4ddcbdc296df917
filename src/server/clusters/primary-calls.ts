// The primary's own connections to hosts: src/upstream with a transport on the primary, made when it is first needed.

import { Random } from '../../common/random.js';
import { Memory } from '../../io/memory.js';
import { Clock } from '../../io/time/clock.js';
import { TimerDriver } from '../../io/time/timer-driver.js';
import { bufferLimits, Transport } from '../../io/transport.js';
import type { Runtime } from '../../runtime/runtime.js';
import type { CallingThread } from '../../upstream/calling-thread.js';
import { ClusterManager, type ClusterReference } from '../../upstream/cluster-manager.js';
import type { ClusterSnapshot } from '../../upstream/cluster-snapshot.js';
import type { FailedCheckReport } from '../../upstream/health-checks/failed-check-report.js';
import { isHashSpec } from '../../upstream/load-balancer/load-balancer.js';
import type { OutlierReport } from '../../upstream/outliers/outlier-report.js';
import { PRIMARY, SharedWords } from '../../upstream/shared-words.js';
import type { UpstreamThread } from '../../upstream/upstream-thread.js';
import type { Primary } from '../primary.js';
import type { PrimaryCluster } from './version/primary-cluster.js';

/** Calls of the primary are few and small. */
const MEMORY = { receiveBytes: 64 * 1024, scratchBytes: 512 * 1024, arenaBytesPerSize: 4 * 1024 * 1024 };
const BUFFER_LIMIT = 1024 * 1024;

export class PrimaryCalls implements CallingThread {
  readonly #primary: Primary;
  readonly #clusters: ReadonlyMap<string, PrimaryCluster>;
  readonly #runtime: Runtime;
  readonly #zone: string;
  readonly #reserve: number;
  #running: Running | undefined;

  /**
   * `clusters` are those of the server, which come and go; `zone` is that of the server, or ''; `reserve`: descriptors that are left to
   * others.
   */
  constructor(
    primary: Primary,
    clusters: ReadonlyMap<string, PrimaryCluster>,
    runtime: Runtime,
    zone: string,
    reserve = 0,
  ) {
    this.#primary = primary;
    this.#clusters = clusters;
    this.#runtime = runtime;
    this.#zone = zone;
    this.#reserve = reserve;
  }

  begin(): UpstreamThread {
    const { thread } = this.#run();
    thread.transport.beginTurn();
    return thread;
  }

  reference(name: string): ClusterReference {
    const { manager } = this.#run();
    const reference = manager.reference(name);
    const cluster = this.#clusters.get(name);
    if (reference.current === undefined && cluster !== undefined) manager.apply(snapshotOf(cluster));
    return reference;
  }

  /** A cluster is there, or has other hosts. */
  clusterChanged(cluster: PrimaryCluster): void {
    const manager = this.#running?.manager;
    if (manager?.find(cluster.spec.name) !== undefined) manager.apply(snapshotOf(cluster));
  }

  /** The cluster is gone: its connections end with their calls. */
  clusterRemoved(name: string): void {
    this.#running?.manager.remove(name);
  }

  /** Closes all connections. */
  close(): void {
    this.#running?.thread.transport.destroy();
    this.#running?.timers.close();
  }

  #run(): Running {
    this.#running ??= this.#start();
    return this.#running;
  }

  #start(): Running {
    const { shim, store, words } = this.#primary;
    const report = (what: string, error: unknown) => this.#primary.internalError(what, error);
    const clock = new Clock();
    const memory = new Memory(MEMORY);
    const timers = new TimerDriver((error) => report('a timer failed', error), clock);
    const transport = new Transport(shim, memory, clock, bufferLimits(BUFFER_LIMIT), this.#reserve, (error, what) => {
      report(what, error);
    });
    transport.onTurn = () => timers.wheel.setTime(clock.monotonicMs);
    const thread = {
      transport,
      memory,
      clock,
      wheel: timers.wheel,
      random: new Random(),
      stats: store.own,
      words: new SharedWords(words.handle(PRIMARY)),
      runtime: this.#runtime,
      zone: this.#zone,
      reportFailedCheck: ({ block, cluster }: FailedCheckReport) =>
        this.#clusters.get(cluster)?.membership.failedInTraffic(block),
      reportOutlier: (report: OutlierReport) => this.#clusters.get(report.cluster)?.reportOutlier(report),
    };
    return { thread, timers, manager: new ClusterManager(thread) };
  }
}

/** No call of the primary has a hash: it need not build what finds hosts by one. */
function snapshotOf(cluster: PrimaryCluster): ClusterSnapshot {
  const snapshot = cluster.snapshot();
  const { spec } = snapshot;
  if (!isHashSpec(spec.loadBalancer)) return snapshot;
  return { ...snapshot, spec: { ...spec, loadBalancer: { policy: 'random' } } };
}

interface Running {
  readonly thread: UpstreamThread;
  readonly timers: TimerDriver;
  readonly manager: ClusterManager;
}
