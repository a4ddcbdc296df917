// The primary's own connections to hosts: src/upstream with a transport on the primary, which is created on first use.

import { Random } from '../../common/random.js';
import type { Any, Random as RandomConfig } from '../../config/generated/api.js';
import { random } from '../../extensions/load-balancing-policies/random/index.js';
import { Memory } from '../../io/memory.js';
import { PageReleaser } from '../../io/page-releaser.js';
import { openThreadIo } from '../../io/thread-io.js';
import type { TimerDriver } from '../../io/time/timer-driver.js';
import { internalError } from '../../log/internal-errors.js';
import type { Runtime } from '../../runtime/runtime.js';
import type { CallingThread, CallTarget } from '../../upstream/calling-thread.js';
import { ClusterManager, type ClusterReference } from '../../upstream/cluster-manager.js';
import type { ClusterSnapshot } from '../../upstream/cluster-snapshot.js';
import { loadBalancerSpec } from '../../upstream/load-balancer/policy.js';
import type { ServerPlace } from '../../upstream/server-place.js';
import { PRIMARY, SharedWords } from '../../upstream/shared-words.js';
import { placeOfThread, type UpstreamThread } from '../../upstream/upstream-thread.js';
import type { Primary } from '../primary.js';
import type { CallTargets } from './call-targets.js';
import type { ClusterSet } from './cluster-set.js';
import type { PrimaryCluster } from './version/primary-cluster.js';

/** The primary makes few calls. The arena has room for what slow readers leave of two connections: their windows. */
const MEMORY = { receiveBytes: 64 * 1024, scratchBytes: 512 * 1024, arenaBytes: 64 * 1024 * 1024 };
const BUFFER_LIMIT = 1024 * 1024;

/** The live clusters of the server, and the receivers of what calls observe of their hosts. */
export type CalledClusters = Pick<
  ClusterSet,
  'byName' | 'reportEvents' | 'reportFailedCheck' | 'reportOutlier' | 'requestHost'
>;

export interface CallOptions {
  readonly runtime: Runtime;
  readonly place: ServerPlace;
  /** Descriptors reserved for other uses. */
  readonly reserve: number;
  /** This server's own address. */
  readonly ip: string;
  /** For target(). */
  readonly targets: CallTargets;
}

export class PrimaryCalls implements CallingThread {
  readonly #primary: Primary;
  readonly #clusters: CalledClusters;
  readonly #options: CallOptions;
  #running: Running | undefined;

  constructor(primary: Primary, clusters: CalledClusters, options: CallOptions) {
    this.#primary = primary;
    this.#clusters = clusters;
    this.#options = options;
  }

  begin(): UpstreamThread {
    const { thread } = this.#run();
    thread.transport.beginTurn();
    return thread;
  }

  reference(name: string): ClusterReference {
    const { manager } = this.#run();
    const reference = manager.reference(name);
    const cluster = this.#clusters.byName.get(name);
    if (reference.current === undefined && cluster !== undefined) manager.apply(snapshotOf(cluster));
    return reference;
  }

  get ip(): string {
    return this.#options.ip;
  }

  target(uri: string): CallTarget {
    const { manager } = this.#run();
    const { targets } = this.#options;
    const cluster = targets.acquire(uri);
    const reference = manager.reference(cluster.spec.name);
    if (reference.current === undefined) manager.apply(snapshotOf(cluster));
    return { reference, release: () => targets.release(uri) };
  }

  /** Called when a cluster was added, or its hosts have changed. */
  clusterChanged(cluster: PrimaryCluster): void {
    const manager = this.#running?.manager;
    if (manager?.find(cluster.spec.name) !== undefined) manager.apply(snapshotOf(cluster));
  }

  /** Called when the cluster was removed. Its connections end with their calls. */
  clusterRemoved(name: string): void {
    this.#running?.manager.remove(name);
  }

  /** Closes all connections. */
  close(): void {
    this.#running?.pages.close();
    this.#running?.thread.transport.destroy();
    this.#running?.timers.close();
  }

  #run(): Running {
    if (this.#running !== undefined) return this.#running;
    const { localCluster } = this.#options.place;
    this.#running = this.#start();
    // Its hosts are needed for zone-aware routing, even if it is not called.
    if (localCluster !== '') this.reference(localCluster);
    return this.#running;
  }

  #start(): Running {
    const { extensions, shim, store, words } = this.#primary;
    const { place, reserve, runtime } = this.#options;
    const clusters = this.#clusters;
    const { timers, ...io } = openThreadIo(shim, {
      memory: new Memory(MEMORY),
      bufferLimit: BUFFER_LIMIT,
      reserve,
      failed: internalError,
    });
    const thread: UpstreamThread = {
      ...io,
      wheel: timers.wheel,
      random: new Random(),
      stats: store.own,
      words: new SharedWords(words.handle(PRIMARY)),
      policies: extensions,
      runtime,
      ...placeOfThread(place),
      reportFailedCheck: (report) => clusters.reportFailedCheck(report),
      reportOutlier: (report) => clusters.reportOutlier(report),
      reportEvents: (report) => clusters.reportEvents(report),
      requestHost: (request) => clusters.requestHost(request),
    };
    return { thread, timers, pages: new PageReleaser(io.transport, shim), manager: new ClusterManager(thread) };
  }
}

const ANY_HOST = loadBalancerSpec<Any & RandomConfig, unknown>(random, { '@type': random.typeUrls[0]! });

/** The primary's calls have no hash, so the structures for picks by hash need not be built. Subsets have a fallback for them. */
function snapshotOf(cluster: PrimaryCluster): ClusterSnapshot {
  const snapshot = cluster.snapshot();
  const { spec } = snapshot;
  const { picksByHash, subsets } = spec.loadBalancer;
  if (!picksByHash) return snapshot;
  return { ...snapshot, spec: { ...spec, loadBalancer: { ...ANY_HOST, subsets } } };
}

interface Running {
  readonly thread: UpstreamThread;
  readonly timers: TimerDriver;
  readonly pages: PageReleaser;
  readonly manager: ClusterManager;
}
