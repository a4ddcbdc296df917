// What the admin interface may see and do of the server: all that its handlers lean on.

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
import type { RenderPool } from './render/render-pool.js';

/** envoy.admin.v3.ServerInfo.State */
export type ServerStateName = 'LIVE' | 'DRAINING' | 'PRE_INITIALIZING' | 'INITIALIZING';

/** An active listener. */
export interface ListenerView {
  readonly name: string;
  /** Where it really listens, its main address first: port 0 has become a port. */
  readonly addresses: readonly Address[];
  /** Of its stats: `listener.127.0.0.1_80.` */
  readonly statPrefix: string;
}

/** An active cluster; one that is still warming is none. */
export interface ClusterView {
  readonly spec: ClusterSpec;
  /** Limits of the default and of the high priority, as runtime has them now. */
  readonly thresholds: readonly [Thresholds, Thresholds];
  /** It came from a management server, not from the bootstrap. */
  readonly isAddedViaApi: boolean;
  /** '' when it has none. */
  readonly edsServiceName: string;
  /** As they are now, in the order of discovery: the same list as long as none comes or goes. */
  readonly hosts: Iterable<KnownHost>;
  /** Undefined: it has no outlier detection. */
  readonly outliers: OutlierView | undefined;
}

/** What outlier detection has found in the last interval, in percent; -1: not enough is known. */
export interface OutlierView {
  rates(origin: Origin): ClusterRates;
  /** Of the host with these words. */
  successRate(block: number, origin: Origin): number;
}

/** What is left at one listener. */
export interface DrainingListenerView {
  readonly name: string;
  /** DRAINING: its connections are asked to end; STOPPED: it accepts no more, and asks no more either. */
  readonly state: 'ACTIVE' | 'DRAINING' | 'STOPPED';
  readonly connections: number;
  readonly requests: number;
  /** It drains because an update has replaced or removed it. */
  readonly change?: LeftByChange;
}

export interface LeftByChange {
  readonly strategy: 'gradual' | 'immediate';
  /** The name of the filter chain that drains; undefined: the whole listener. */
  readonly filterChain: string | undefined;
  /** Until what is left is closed. */
  readonly remainingMs: number;
}

export interface DrainStatusView {
  /** The one that was begun last; undefined when there was none. */
  readonly drain:
    | {
        readonly strategy: 'gradual' | 'immediate';
        /** All listeners, or those with traffic_direction INBOUND. */
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
  /** The file; `<inline>` when the configuration holds the certificate itself. */
  readonly path: string;
  /** In hexadecimal. */
  readonly serialNumber: string;
  readonly subjectAltNames: readonly ({ dns: string } | { uri: string } | { ip_address: string })[];
  readonly validFrom: Date;
  readonly expiration: Date;
  /** Of the OCSP response that is stapled to it. */
  readonly ocsp?: { readonly validFrom: Date; readonly expiration: Date };
}

/** Somebody who has not all that he needs to begin. */
export interface UnreadyView {
  readonly name: string;
  /** Listeners wait for it; before the workers start they wait with the server. */
  readonly isListener: boolean;
  readonly targets: readonly string[];
}

/** Whether a profiler has been started, and why not. */
export type StartOfProfiler =
  | { readonly isStarted: true }
  /** `isFailure`: not because of what runs already, but because it cannot be done. */
  | { readonly isStarted: false; readonly isFailure: boolean; readonly why: string };

/** The profilers of all threads. Profiles are pprof's protobuf, gzipped. */
export interface ProfilersView {
  /** Where profiles are written. */
  readonly path: string;
  start(kind: ProfilerKind): Promise<StartOfProfiler>;
  /** Writes the profile and resolves with it; undefined when the profiler was not running. Rejects with a BatonError when it cannot be written. */
  stop(kind: ProfilerKind): Promise<Uint8Array | undefined>;
  /** What is in use of the heaps. */
  heap(): Promise<AsyncIterable<Uint8Array>>;
  /** The same at the peak since the heap profiler was started last; undefined when it never was. */
  peakHeap(): Promise<AsyncIterable<Uint8Array> | undefined>;
}

/** The server as its admin interface knows it. Methods are called on the primary, between two turns of its loop. */
export interface AdminServices {
  readonly stats: StatsStore;
  /** Brings gauges that the primary keeps up to date, for an answer that shows them. */
  updateStats(): Promise<void>;
  /** Makes large bodies in other threads. It is closed with the admin server. */
  readonly renders: RenderPool;
  readonly profilers: ProfilersView;
  /** stats_flush_on_admin: an answer about stats flushes them first. */
  readonly flushesStatsOnAdmin: boolean;
  /** `{revision}/{version}/{status}/{build type}` */
  readonly version: string;
  /** Opaque; 'disabled' without hot restarts. */
  readonly hotRestartVersion: string;
  /** The node with what the command line overrides and with what this program is, in proto JSON form, without what is secret. */
  readonly node: Node;
  /** command_line_options of /server_info, in proto JSON form. */
  readonly commandLineOptions: { readonly [name: string]: unknown };

  state(): ServerStateName;
  /** Seconds since this process started, and since the first epoch did. */
  uptimes(): { readonly currentEpoch: number; readonly allEpochs: number };
  /** May be read piece by piece: a listener or cluster that goes away in between is left out. */
  listeners(): Iterable<ListenerView>;
  /** See listeners(). */
  clusters(): Iterable<ClusterView>;
  /** Of the last update of CDS that was used: '' before the first one, and 'static' without CDS. */
  clustersVersion(): string;
  /** Merges histograms now: a new interval begins. Resolves when it is done. */
  flushStats(): Promise<void>;
  /** Counters count from 0 again, and recent lookups are forgotten. Resolves when all do. */
  resetCounters(): Promise<void>;
  /** Levels of loggers, on all threads. */
  setLevelRules(rules: LevelRules): void;
  /** Resolves when all workers have done what they have been told so far, or are too busy for an answer. */
  workersHandled(): Promise<void>;
  /** Whether health checks are to fail. */
  setHealthFailing(isFailing: boolean): void;
  /** What the heaps of all threads take, the primary's first. */
  memory(): Promise<readonly ThreadMemory[]>;
  /** The configuration in use, a dump each kind of resources, in the order in which they are shown. */
  configDumps(includeEds: boolean): Iterable<ConfigDump>;
  /** How often threads waited for each other; undefined unless it is counted. */
  contention(): ContentionSums | undefined;
  /** Listeners, or those for inbound traffic, accept no more. Resolves when their sockets are closed. */
  stopListeners(inboundOnly: boolean): Promise<void>;
  /** Listeners, or those for inbound traffic, ask their connections to end, and stop after a time unless `staysOpen`. */
  drainListeners(inboundOnly: boolean, staysOpen: boolean): void;
  drainStatus(): Promise<DrainStatusView>;
  /** The certificates that TLS contexts have loaded, an element a context. */
  tlsContexts(): Iterable<TlsContextView>;
  /** What the server waits for before it is live, and what listeners do: the active ones till then, afterwards those that warm. */
  unreadyTargets(): Iterable<UnreadyView>;
  /** The layers of runtime that there are now, lowest first. */
  runtimeLayers(): readonly Layer[];
  /** The keys of all layers, in order, found in steps. */
  runtimeKeys(): Generator<void, readonly string[]>;
  /**
   * Overrides runtime values for all threads. Resolves when the workers have been sent them, with false, and nothing done, without an
   * admin layer; rejects with a BatonError RUNTIME_LAYER when that would hold too much.
   */
  modifyRuntime(entries: AdminEntries): Promise<boolean>;
  /** Reads the configuration anew, compares it with the one that runs, and applies it if asked to. */
  reloadConfiguration(request: ReloadRequest): Promise<ReloadView>;
  /** Opens log files anew, as SIGUSR1 does. */
  reopenLogs(): void;
  /** Begins a clean exit and returns; AdminServer.close() lets answers in flight go out. */
  quit(): void;
}
