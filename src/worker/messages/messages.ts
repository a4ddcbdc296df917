// The messages between the primary and a worker. All of it is plain data.

import type { MessagePort } from 'node:worker_threads';
import type { FileLogOptions } from '../../access-log/files/file-log.js';
import type { ProfileCommand } from '../../common/profiling/profile.js';
import type { Any, FilterChain, Listener, Node, TlsKeyLog } from '../../config/generated/api.js';
import type { LocalIdentity } from '../../http/headers/edge/forwarding-headers.js';
import type { DrainWindow } from '../../listener/drain-window.js';
import type { LevelRules } from '../../log/level-rules.js';
import type { LoggerFile, LoggingOptions } from '../../log/logger.js';
import type { OverloadSpec } from '../../runtime/overload/overload-state.js';
import type { RuntimeChange, RuntimeSnapshot } from '../../runtime/snapshot.js';
import type { ScopeRef, StatsChunks, WorkerStatsAttachment } from '../../stats/thread-stats.js';
import type { ClusterSnapshot } from '../../upstream/cluster-snapshot.js';
import type { PackedCluster } from '../../upstream/packed-cluster.js';
import type { ServerPlace } from '../../upstream/server-place.js';
import type { SharedWordsHandle } from '../../upstream/shared-words.js';
import type { HeartbeatStart } from './heartbeat.js';
import type { PackedRoutes } from './packed-routes.js';

/** A filter chain for a worker. */
export interface ChainSnapshot {
  /** Unique in the process, together with the ids of listeners. A chain that an update does not change keeps its id. */
  readonly id: number;
  /** Without what is in `routes`. */
  readonly config: FilterChain;
  /** Inline routes of its connection manager; undefined: it has none. */
  readonly routes: PackedRoutes | undefined;
  /** It is the default_filter_chain. */
  readonly isDefault: boolean;
  /** Undefined: its connections are plain. */
  readonly tls: ChainTls | undefined;
  /** Block of shared words for the counts of its filters; undefined: they have none. */
  readonly counts: number | undefined;
}

/** The TLS of a filter chain; `config` is without its secrets. */
export interface ChainTls {
  /** Number of the context in the native engine. */
  readonly context: number;
  /** How long a handshake may take. */
  readonly timeoutMs: number;
  readonly keyLog: TlsKeyLog | undefined;
}

/** A version of a listener for a worker. */
export interface ListenerSnapshot {
  /** Unique in the process: other versions of the listener may still have connections. */
  readonly id: number;
  readonly name: string;
  /** Without its filter chains. */
  readonly config: Listener;
  /** All chains for new connections. Other chains of the worker remain for their existing connections. */
  readonly chains: readonly ChainSnapshot[];
  /** Token of the listener in stat names. */
  readonly statToken: string;
  /** Its block in the shared words. */
  readonly block: number;
  /** All its sockets; empty with bind_to_port: false. The primary owns the descriptors. */
  readonly fds: readonly number[];
  /** Every worker accepts on all of them; otherwise each has some of its own. */
  readonly isShared: boolean;
  /** The sockets listen: connections are accepted at once. */
  readonly isListening: boolean;
  /** The window in which it drains; undefined: it does not drain. */
  readonly drain: DrainWindow | undefined;
}

/** Sockets of a listener's version on workers; the primary owns the descriptors. */
export interface WorkerSockets {
  readonly id: number;
  /** All sockets: their index determines which worker uses them. */
  readonly fds: readonly number[];
  /** Every worker accepts on all of them; otherwise each has some of its own. */
  readonly isShared: boolean;
  /** Index of the first new one. */
  readonly from: number;
}

/** A dynamic route configuration. */
export interface RouteSnapshot {
  /** Never reused. */
  readonly id: number;
  /** See route-keys.ts; '' when only scopes refer to it. */
  readonly key: string;
  /** Undefined: not received yet. */
  readonly config: PackedRoutes | undefined;
}

/** New inline routes of a connection manager: connections continue, and new requests use them. */
export interface InlineRoutesSnapshot {
  /** Ids of the listener's version and of its chain. */
  readonly listener: number;
  readonly chain: number;
  readonly routes: PackedRoutes;
}

/** The scopes of a connection manager (SRDS). */
export interface RouteScopesSnapshot {
  readonly key: string;
  readonly scopes: readonly RouteScopeSnapshot[];
}

export interface RouteScopeSnapshot {
  readonly fragments: readonly string[];
  /** Id of its route configuration. */
  readonly routes: number;
}

/** The discovered configuration of an HTTP filter for a worker. */
export interface FilterConfigSnapshot {
  /** Unique among filter configurations. */
  readonly id: number;
  /** From keyOfDiscovered(); may be reused. */
  readonly key: string;
  /** Undefined: none has been received. */
  readonly config: Any | undefined;
}

/** The changes of a version; everything else stays as it is. */
export interface Snapshot {
  /** Grows with each snapshot. */
  readonly version: number;
  /** The complete state at that version, for a new worker. */
  readonly isComplete: boolean;
  /** Stats memory that the worker may not have yet. */
  readonly chunks: StatsChunks;
  /** Scopes that the worker counts in, by statScopeKey(). Those of clusters are in their snapshots. */
  readonly statScopes: Readonly<Record<string, ScopeRef>>;
  readonly clusters: readonly ClusterSnapshot[];
  /** Clusters that are built on first use. */
  readonly packedClusters: readonly PackedCluster[];
  readonly removedClusters: readonly string[];
  readonly filterConfigs: readonly FilterConfigSnapshot[];
  /** By id. */
  readonly removedFilterConfigs: readonly number[];
  readonly routes: readonly RouteSnapshot[];
  /** By id. */
  readonly removedRoutes: readonly number[];
  readonly routeScopes: readonly RouteScopesSnapshot[];
  /** By key. */
  readonly removedRouteScopes: readonly string[];
  readonly listeners: readonly ListenerSnapshot[];
  /** Applied all together, or not at all when one cannot be built. */
  readonly inlineRoutes: readonly InlineRoutesSnapshot[];
  /** Ids of removed versions, and of removed chains of other versions. Their remaining connections are closed. */
  readonly removedListeners: readonly number[];
  /** By key; no longer counted in. */
  readonly removedStatScopes: readonly string[];
}

/** The start data of a worker. */
export interface WorkerStart {
  readonly index: number;
  /** It replaces a thread that has died. */
  readonly isReplacement: boolean;
  readonly workers: number;
  readonly stats: WorkerStatsAttachment;
  readonly words: SharedWordsHandle;
  /** See tokenBucketMemory(). */
  readonly tokenBuckets: SharedArrayBuffer;
  /** Limit of the memory for requests and responses, in bytes. */
  readonly bufferMemory: number;
  /** Block of the totals of all listeners in the shared words. */
  readonly listenersBlock: number;
  /** Limit of the overload manager on the connections of all listeners; undefined: only runtime may set one. */
  readonly maxConnections: number | undefined;
  /** See InternalConnections. */
  readonly internalBufferBytes: number | undefined;
  /** Undefined without actions or load shed points of the overload manager. */
  readonly overload: OverloadSpec | undefined;
  readonly logging: Omit<LoggingOptions, 'threadId'>;
  /** Current rules; `logging` has those at the server's start. */
  readonly levelRules: LevelRules;
  /** The buffer of ServerHealth. */
  readonly health: SharedArrayBuffer;
  /** States that extensions on the primary have published, by name. */
  readonly extensionStates: Readonly<Record<string, unknown>>;
  readonly identity: LocalIdentity;
  /** See WorkerContext. */
  readonly defaultTracer: Any | undefined;
  /** The node that this server reports of itself. */
  readonly node: Node;
  readonly place: ServerPlace;
  readonly fileFlush: FileLogOptions;
  readonly snapshot: Snapshot;
  readonly runtime: RuntimeSnapshot;
  readonly heartbeat: HeartbeatStart;
  /** enable_dispatcher_stats. */
  readonly watchesLoop: boolean;
}

export interface OpenCounts {
  readonly connections: number;
  readonly requests: number;
  /** They are those of an internal listener. */
  readonly isInternal?: boolean;
}

/** A worker's open connections. */
export interface WorkerConnections {
  /** By id, of listeners and draining chains. */
  readonly listeners: ReadonlyMap<number, OpenCounts>;
  /** Closed sockets that still have bytes to deliver, and listen sockets that still accept. */
  readonly closing: number;
  readonly accepting: number;
}

export type ToWorker =
  | { readonly kind: 'snapshot'; readonly snapshot: Snapshot }
  /** Changed runtime values. Parts take effect together with the last one (`isWhole`). */
  | { readonly kind: 'runtime'; readonly change: RuntimeChange; readonly isWhole: boolean }
  | { readonly kind: 'reopen-logs' }
  | { readonly kind: 'log-levels'; readonly rules: LevelRules }
  /** Update the gauges of the thread's memory. */
  | { readonly kind: 'count-memory' }
  /** Collect garbage, and return free memory to the kernel. */
  | { readonly kind: 'shrink-heap' }
  /** Reply when all previous messages are handled. */
  | { readonly kind: 'handled'; readonly reply: MessagePort }
  /** Reply with a ThreadMemory. */
  | { readonly kind: 'memory'; readonly reply: MessagePort }
  /** Reply with a ProfileReply. */
  | { readonly kind: 'profile'; readonly command: ProfileCommand; readonly reply: MessagePort }
  /** Accept on the sockets of this listener, which listen now. */
  | { readonly kind: 'accept'; readonly id: number }
  /** Suspend accepting on these listeners, and keep their sockets: 'accept' may follow. */
  | { readonly kind: 'suspend-listeners'; readonly ids: readonly number[] }
  /** Additional sockets of this listener, for 'accept'. */
  | { readonly kind: 'add-sockets'; readonly sockets: WorkerSockets }
  /** A state published by an extension's part on the primary; undefined: it is withdrawn. */
  | { readonly kind: 'extension-state'; readonly name: string; readonly state: unknown }
  /** Stop accepting on these listeners; with `acceptRest` their backlogs are accepted first. */
  | { readonly kind: 'stop-listeners'; readonly ids: readonly number[]; readonly acceptRest: boolean }
  /** Begin to drain these listeners or chains; by id. */
  | { readonly kind: 'drain'; readonly windows: ReadonlyMap<number, DrainWindow> }
  /** Replace the drain windows of these listeners; undefined: they do not drain. */
  | { readonly kind: 'drain-changed'; readonly windows: ReadonlyMap<number, DrainWindow | undefined> }
  /** The drain time is over: close connections that cannot be asked to end. */
  | { readonly kind: 'drain-ended'; readonly ids: readonly number[] }
  /** Reply with WorkerConnections. */
  | { readonly kind: 'connections'; readonly reply: MessagePort }
  /**
   * Hand established connections over to the child process on these channels; `descriptors` is the maximum in flight per channel.
   */
  | { readonly kind: 'hand-over'; readonly channels: readonly number[]; readonly descriptors: number }
  /** Receive connections of the parent process on these channels. */
  | { readonly kind: 'take-over'; readonly channels: readonly number[] }
  /** Write buffered data and end. */
  | { readonly kind: 'shut-down' };

export type FromWorker =
  /** The snapshot of this version is in use, and nothing older. */
  | { readonly kind: 'applied'; readonly version: number }
  /** A configuration that the loader has accepted cannot be built. If it is a listener's, 'applied' follows nevertheless. */
  | { readonly kind: 'failed'; readonly version: number; readonly isComplete: boolean; readonly message: string }
  /** A message to an extension's part on the primary. */
  | { readonly kind: 'extension'; readonly name: string; readonly message: unknown }
  /** An access log file is open. `memory`: see SharedLines. */
  | {
      readonly kind: 'log-opened';
      readonly file: number;
      readonly path: string;
      readonly memory: SharedArrayBuffer;
    }
  | { readonly kind: 'log-closed'; readonly file: number }
  /** Files of this thread that have a logger. */
  | { readonly kind: 'logger-files'; readonly files: readonly LoggerFile[] };
