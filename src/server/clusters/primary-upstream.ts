// The clusters of a server, and the primary's work for them: calls to hosts, health checks, and the handling of failure reports
// from threads.

import type { FileLogOptions } from '../../access-log/files/file-log.js';
import { Random } from '../../common/random.js';
import type { Bootstrap } from '../../config/generated/api.js';
import type { PrimarySecrets } from '../../extensions/factories.js';
import { monotonicMs } from '../../io/time/timer-driver.js';
import { internalError } from '../../log/internal-errors.js';
import type { Runtime } from '../../runtime/runtime.js';
import { ClusterManagerStats, ThreadLocalClusterManagerStats } from '../../stats/layouts/cluster.js';
import type { DnsResolver } from '../../upstream/dns/resolver.js';
import { resolverSettings } from '../../upstream/dns/resolver-settings.js';
import { EVENT_PORT, type EventReport } from '../../upstream/event-report.js';
import { FAILED_CHECK_PORT, type FailedCheckReport } from '../../upstream/health-checks/failed-check-report.js';
import { OUTLIER_PORT, type OutlierReport } from '../../upstream/outliers/outlier-report.js';
import { type HostRequest, REQUESTED_HOSTS_PORT } from '../../upstream/requested-hosts/host-request.js';
import { serverPlace } from '../../upstream/server-place.js';
import type { ConfigSources } from '../../xds/subscription.js';
import type { Primary } from '../primary.js';
import type { PrimaryPorts } from '../workers/primary-ports.js';
import { CallTargets } from './call-targets.js';
import type { PublishedClusters } from './cluster-changes.js';
import { ClusterSet, type ClusterSetContext } from './cluster-set.js';
import { EventFiles } from './event-files.js';
import { PrimaryCheckThread } from './health-checks/primary-check-thread.js';
import { HostRefusals } from './host-refusals.js';
import { OutlierEventLog } from './outlier-event-log.js';
import { PrimaryCalls } from './primary-calls.js';

/** There may be many hosts to check: checks leave half of the descriptors that are reserved for operators. */
const CHECKS_RESERVE = 32;

export interface UpstreamOptions {
  readonly bootstrap: Bootstrap;
  readonly runtime: Runtime;
  /** Flush options of the log of ejections. */
  readonly fileFlush: FileLogOptions;
  /** This server's own address. */
  readonly localIp: string;
  /** Returns the secrets that workers can get. */
  readonly filterSecrets: () => PrimarySecrets;
  /** Returns the sources of endpoint assignments. Called for the first cluster of type EDS. */
  readonly sources: () => ConfigSources;
}

export class PrimaryUpstream {
  readonly clusters: ClusterSet;
  /** The primary's own calls to clusters. */
  readonly calls: PrimaryCalls;
  /** The hosts of services without a cluster. */
  readonly #targets: CallTargets;
  readonly #primary: Primary;
  readonly checks: PrimaryCheckThread;
  /** Connections of health checks. */
  readonly #checkCalls: PrimaryCalls;
  /** That of typed_dns_resolver_config; undefined: the resolver of the process. */
  readonly #resolver: DnsResolver | undefined;
  readonly eventFiles: EventFiles;
  /** Undefined when none is configured. */
  readonly #outlierLog: OutlierEventLog | undefined;

  constructor(primary: Primary, options: UpstreamOptions) {
    const { bootstrap, fileFlush, runtime } = options;
    this.#primary = primary;
    this.checks = this.#createChecks(runtime);
    const { event_log_path: eventLog } = bootstrap.cluster_manager?.outlier_detection ?? {};
    this.eventFiles = new EventFiles(fileFlush, primary.store);
    if (eventLog) this.#outlierLog = new OutlierEventLog(eventLog, this.eventFiles);
    const resolver = resolverSettings(bootstrap.typed_dns_resolver_config);
    this.#resolver = resolver && primary.resolver.withSettings(resolver);
    const context = this.#clusterContext(options);
    this.clusters = this.#createClusters(context);
    this.#targets = this.#createTargets(context);
    const place = serverPlace(bootstrap);
    const settings = { runtime, place, ip: options.localIp, targets: this.#targets };
    this.calls = new PrimaryCalls(primary, this.clusters, { ...settings, reserve: 0 });
    this.#checkCalls = new PrimaryCalls(primary, this.clusters, { ...settings, reserve: CHECKS_RESERVE });
    this.#receiveReports(primary.ports);
  }

  /** Opens the log of ejections, if there is one. Throws BatonError when that fails. */
  openLog(): void {
    this.#outlierLog?.open();
  }

  /** Called after a log rotation. */
  reopenLog(): void {
    this.eventFiles.reopen();
  }

  /** Stops all clusters, and closes the primary's connections to their hosts. */
  async close(): Promise<void> {
    this.checks.close();
    this.clusters.stop();
    this.#targets.stop();
    this.#resolver?.close();
    this.#checkCalls.close();
    this.calls.close();
    await this.eventFiles.close();
  }

  #createChecks(runtime: Runtime): PrimaryCheckThread {
    const { store, timers } = this.#primary;
    return new PrimaryCheckThread({
      ...{ store, timers, runtime },
      random: new Random(),
      calls: () => this.#checkCalls,
      failed: internalError,
    });
  }

  #clusterContext({ bootstrap, filterSecrets, runtime, sources }: UpstreamOptions): ClusterSetContext {
    const { concurrency, extensions, scopes, store, timers, tls, words } = this.#primary;
    const managerStats = scopes.add('cluster_manager.', ClusterManagerStats);
    const inflated = scopes.add('thread_local_cluster_manager.main_thread.', ThreadLocalClusterManagerStats);
    for (let index = 0; index < concurrency; index++) {
      scopes.add(`thread_local_cluster_manager.worker_${index}.`, ThreadLocalClusterManagerStats);
    }
    return {
      ...{ store, words, timers, tls, runtime, managerStats, inflated, sources },
      resolver: this.#resolver ?? this.#primary.resolver,
      threads: concurrency + 1,
      policies: extensions,
      extensions,
      filterSecrets,
      locality: serverPlace(bootstrap).locality,
      random: new Random(),
      now: monotonicMs,
      checks: this.checks,
      outlierEvents: this.#outlierLog,
      eventFiles: this.eventFiles,
    };
  }

  #createClusters(context: ClusterSetContext): ClusterSet {
    const refusals = new HostRefusals((list) => this.#primary.ports.port(REQUESTED_HOSTS_PORT).publish(list));
    return new ClusterSet(context, {
      changed: (cluster) => this.calls.clusterChanged(cluster),
      removed: (name) => this.calls.clusterRemoved(name),
      publish: (changes) => this.#publish(changes),
      refuseHost: (refusal) => refusals.add(refusal),
    });
  }

  #createTargets(context: ClusterSetContext): CallTargets {
    const { snapshots } = this.#primary;
    const clusters = new ClusterSet(
      { ...context, isUncounted: true },
      {
        changed: (cluster) => this.calls.clusterChanged(cluster),
        removed: (name) => this.calls.clusterRemoved(name),
        publish: ({ retired }) => {
          for (const what of retired) snapshots.retire(what);
        },
      },
    );
    return new CallTargets(clusters);
  }

  /** Receives reports from workers about hosts. The primary's own calls report without a port. */
  #receiveReports(ports: PrimaryPorts): void {
    ports.port(FAILED_CHECK_PORT).onMessage = (_worker, report) => {
      this.clusters.reportFailedCheck(report as FailedCheckReport);
    };
    const outliers = ports.port(OUTLIER_PORT);
    outliers.onMessage = (_worker, report) => this.clusters.reportOutlier(report as OutlierReport);
    ports.port(EVENT_PORT).onMessage = (_worker, report) => this.clusters.reportEvents(report as EventReport);
    ports.port(REQUESTED_HOSTS_PORT).onMessage = (_worker, request) => {
      this.clusters.requestHost(request as HostRequest);
    };
    outliers.onWorkerDeath = () => this.clusters.recheckOutliers();
  }

  #publish({ retired, ...parts }: PublishedClusters): void {
    const { publication, snapshots } = this.#primary;
    for (const what of retired) snapshots.retire(what);
    publication.publish(parts);
  }
}
