// The interface between the admin handlers and the server: everything that they read and do.

import type { ContentionSums } from '../common/process/contention.js';
import type { ThreadMemory } from '../common/process/thread-memory.js';
import type { ProfilerKind } from '../common/profiling/profile.js';
import type { Node } from '../config/generated/api.js';
import type { Address } from '../io/addresses/address.js';
import type { LevelRules } from '../log/level-rules.js';
import type { AdminEntries } from '../runtime/admin-layer.js';
import type { Layer } from '../runtime/layer.js';
import type { StatsStore } from '../stats/store.js';
import type { ClusterSpec } from '../upstream/cluster-config.js';
import type { KnownHost } from '../upstream/hosts/host-directory.js';
import type { Thresholds } from '../upstream/limits.js';
import type { Origin } from '../upstream/outliers/outlier-detector.js';
import type { ClusterRates } from '../upstream/outliers/success-rates.js';
import type { ConfigDump } from './config-dump/config-dump.js';
import type { ReloadRequest, ReloadView } from './config-reload/reload-view.js';
import type { ExplainQuestion, Explanation } from './explanation.js';
import type { RenderPool } from './render/render-pool.js';

/** envoy.admin.v3.ServerInfo.State */
export type ServerStateName = 'LIVE' | 'DRAINING' | 'PRE_INITIALIZING' | 'INITIALIZING';

/** An active listener. */
export interface ListenerView {
  readonly name: string;
  /** The bound addresses, main address first; port 0 is replaced by the actual port. */
  readonly addresses: readonly Address[];
  /** Prefix of its stats: `listener.127.0.0.1_80.` */
  readonly statPrefix: string;
}

/** An active cluster, not a warming one. */
export interface ClusterView {
  readonly spec: ClusterSpec;
  /** Current limits, with runtime overrides, of the default and the high priority. */
  readonly thresholds: readonly [Thresholds, Thresholds];
  /** Added by a management server, not by the bootstrap. */
  readonly isAddedViaApi: boolean;
  /** '' if there is none. */
  readonly edsServiceName: string;
  /** The current hosts in the order of discovery: the same list object until a host is added or removed. */
  readonly hosts: Iterable<KnownHost>;
  /** Undefined if the cluster has no outlier detection. */
  readonly outliers: OutlierView | undefined;
}

/** Results of outlier detection for the last interval, in percent; -1 if there is too little data. */
export interface OutlierView {
  rates(origin: Origin): ClusterRates;
  /** Returns the rate of the host with this block of shared words. */
  successRate(block: number, origin: Origin): number;
}

/** Remaining connections and requests of one listener. */
export interface DrainingListenerView {
  readonly name: string;
  /** DRAINING: clients are asked to close their connections; STOPPED: the listener no longer accepts and no longer asks. */
  readonly state: 'ACTIVE' | 'DRAINING' | 'STOPPED';
  readonly connections: number;
  readonly requests: number;
  /** Set if an update replaced or removed the listener. */
  readonly change?: DrainByChange;
}

export interface DrainByChange {
  readonly strategy: 'gradual' | 'immediate';
  /** Name of the draining filter chain; undefined for the whole listener. */
  readonly filterChain: string | undefined;
  /** Time until the remaining connections are closed. */
  readonly remainingMs: number;
}

export interface DrainStatusView {
  /** The most recent drain; undefined if there was none. */
  readonly drain:
    | {
        readonly strategy: 'gradual' | 'immediate';
        /** All listeners, or only those with traffic_direction INBOUND. */
        readonly reach: 'all' | 'inbound';
        readonly reason: 'admin' | 'restart' | 'sigterm';
        readonly elapsedMs: number;
        readonly remainingMs: number;
      }
    | undefined;
  readonly listeners: readonly DrainingListenerView[];
}

/** The certificates of one TLS context. */
export interface TlsContextView {
  readonly caCertificates: readonly CertificateView[];
  readonly chain: readonly CertificateView[];
}

export interface CertificateView {
  /** Path of the file; `<inline>` for a certificate in the configuration. */
  readonly path: string;
  /** In hexadecimal. */
  readonly serialNumber: string;
  readonly subjectAltNames: readonly ({ dns: string } | { uri: string } | { ip_address: string })[];
  readonly validFrom: Date;
  readonly expiration: Date;
  /** Validity of the stapled OCSP response. */
  readonly ocsp?: { readonly validFrom: Date; readonly expiration: Date | undefined } | undefined;
}

/** A component with init targets that are not ready. */
export interface UnreadyView {
  readonly name: string;
  /** Listeners wait for these targets; before the workers start, the server waits for them too. */
  readonly isListener: boolean;
  readonly targets: readonly string[];
}

/** Whether a profiler was started, and if not, why. */
export type ProfilerStart =
  | { readonly isStarted: true }
  /** `isFailure`: the profiler cannot be started at all, not only because of one that is running. */
  | { readonly isStarted: false; readonly isFailure: boolean; readonly why: string };

/** The profilers of all threads. Profiles are gzipped pprof protobuf. */
export interface ProfilersView {
  /** The file for profiles. */
  readonly path: string;
  start(kind: ProfilerKind): Promise<ProfilerStart>;
  /**
   * Writes the profile and resolves with it; undefined if the profiler was not running. Rejects with a BatonError if the
   * profile cannot be written.
   */
  stop(kind: ProfilerKind): Promise<Uint8Array | undefined>;
  /** Resolves with the current heap profile. */
  heap(): Promise<AsyncIterable<Uint8Array>>;
  /** Resolves with the heap profile at the peak since the heap profiler was last started; undefined if it never was. */
  peakHeap(): Promise<AsyncIterable<Uint8Array> | undefined>;
}

/** The server for its admin interface. Methods are called on the primary, between two turns of its loop. */
export interface AdminServices {
  readonly stats: StatsStore;
  /** Updates the gauges of the primary for an answer that shows them. */
  updateStats(): Promise<void>;
  /** Renders large bodies on other threads. Closed with the admin server. */
  readonly renders: RenderPool;
  readonly profilers: ProfilersView;
  /** stats_flush_on_admin: answers about stats flush first. */
  readonly flushesStatsOnAdmin: boolean;
  /** `{revision}/{version}/{status}/{build type}` */
  readonly version: string;
  /** Opaque; 'disabled' without hot restart. */
  readonly hotRestartVersion: string;
  /**
   * The node in proto JSON form, with overrides of the command line and the properties of this program, without sensitive
   * values.
   */
  readonly node: Node;
  /** command_line_options of /server_info in proto JSON form. */
  readonly commandLineOptions: { readonly [name: string]: unknown };

  state(): ServerStateName;
  /** A process of a hot restart is starting: this one, or the one that replaces it. */
  isHotRestartInitializing(): boolean;
  /** Returns the seconds since the start of this process and of the first epoch. */
  uptimes(): { readonly currentEpoch: number; readonly allEpochs: number };
  /** Yields active listeners. May be read in several turns: listeners removed in between are skipped. */
  listeners(): Iterable<ListenerView>;
  /** Yields active clusters, as listeners() does. */
  clusters(): Iterable<ClusterView>;
  /** Returns the version of the last accepted CDS update: '' before the first one, 'static' without CDS. */
  clustersVersion(): string;
  /** Merges histograms and begins a new interval. Resolves when this is done. */
  flushStats(): Promise<void>;
  /** Resets counters to 0 and clears recent lookups. Resolves when this is done. */
  resetCounters(): Promise<void>;
  /** Sets the levels of loggers on all threads. */
  setLevelRules(rules: LevelRules): void;
  /** Resolves when all workers have processed the messages sent so far, or are too busy to reply. */
  workersUpdated(): Promise<void>;
  /** Sets whether health checks fail. */
  setHealthFailing(isFailing: boolean): void;
  /** Resolves with the heap memory of all threads, the primary first. */
  memory(): Promise<readonly ThreadMemory[]>;
  /** Yields the configuration in use: one dump per kind of resource, in the order of output. */
  configDumps(includeEds: boolean): Iterable<ConfigDump>;
  /** Resolves with where a request would go from each listener. Rejects with a BatonError if the question cannot be answered. */
  explain(question: ExplainQuestion): Promise<readonly Explanation[]>;
  /** Returns how often threads waited for each other; undefined unless this is counted. */
  contention(): ContentionSums | undefined;
  /** Stops all or only inbound listeners. Resolves when their sockets are closed. */
  stopListeners(inboundOnly: boolean): Promise<void>;
  /** Drains all or only inbound listeners, and stops them after the drain time unless `staysOpen`. */
  drainListeners(inboundOnly: boolean, staysOpen: boolean): void;
  drainStatus(): Promise<DrainStatusView>;
  /** Yields the certificates loaded by each TLS context. */
  tlsContexts(): Iterable<TlsContextView>;
  /**
   * Yields the targets that the server waits for before it is live, and those of listeners: of active ones until then, of
   * warming ones after that.
   */
  unreadyTargets(): Iterable<UnreadyView>;
  /** Returns the current runtime layers, lowest first. */
  runtimeLayers(): readonly Layer[];
  /** Returns the sorted keys of all layers, in steps. */
  runtimeKeys(): Generator<void, readonly string[]>;
  /**
   * Overrides runtime values on all threads. Resolves with true after the values were sent to the workers; resolves with
   * false, without an effect, if there is no admin layer. Rejects with a BatonError RUNTIME_LAYER if the layer would exceed
   * its limit.
   */
  modifyRuntime(entries: AdminEntries): Promise<boolean>;
  /** Reads the configuration again, compares it with the running one, and applies it if requested. */
  reloadConfiguration(request: ReloadRequest): Promise<ReloadView>;
  /** Reopens log files, as SIGUSR1 does. */
  reopenLogs(): void;
  /** Begins a clean exit and returns; AdminServer.close() completes answers in flight. */
  quit(): void;
}
