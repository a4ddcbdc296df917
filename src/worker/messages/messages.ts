// What the primary and a worker say to each other. All of it is plain data.

import type { MessagePort } from 'node:worker_threads';
import type { FileLogOptions } from '../../access-log/files/file-log.js';
import type { ProfileCommand } from '../../common/profiling/profile.js';
import type { Any, FilterChain, Listener } from '../../config/generated/api.js';
import type { LocalIdentity } from '../../http/headers/edge/forwarding-headers.js';
import type { DrainWindow } from '../../listener/drain-window.js';
import type { LevelRules } from '../../log/level-rules.js';
import type { LoggerFile, LoggingOptions } from '../../log/logger.js';
import type { RuntimeChange, RuntimeSnapshot } from '../../runtime/snapshot.js';
import type { ScopeRef, StatsChunks, WorkerStatsAttachment } from '../../stats/thread-stats.js';
import type { ClusterSnapshot } from '../../upstream/cluster-snapshot.js';
import type { PackedCluster } from '../../upstream/packed-cluster.js';
import type { SharedWordsHandle } from '../../upstream/shared-words.js';
import type { HeartbeatStart } from './heartbeat.js';
import type { PackedRoutes } from './packed-routes.js';

/** A filter chain as a worker needs it. */
export interface ChainSnapshot {
  /** Unique in the process, among those of listeners too. A chain that an update leaves as it was keeps it. */
  readonly id: number;
  /** Without what is in `routes`. */
  readonly config: FilterChain;
  /** Those that stand in the configuration of its connection manager; undefined: none do. */
  readonly routes: PackedRoutes | undefined;
  /** The default_filter_chain. */
  readonly isDefault: boolean;
}

/** A version of a listener as a worker needs it. */
export interface ListenerSnapshot {
  /** Unique in the process: other versions of the listener may still have connections. */
  readonly id: number;
  readonly name: string;
  /** Without its filter chains. */
  readonly config: Listener;
  /** All that take new connections; chains that the worker has besides go on for the connections that they have. */
  readonly chains: readonly ChainSnapshot[];
  /** Token of the listener in stat names. */
  readonly statToken: string;
  /** Its block in the shared words. */
  readonly block: number;
  /** All its sockets; none with bind_to_port: false. The primary owns the descriptors. */
  readonly fds: readonly number[];
  /** Every worker accepts on all of them; otherwise each has some of its own. */
  readonly isShared: boolean;
  /** They listen: connections are accepted at once. */
  readonly isListening: boolean;
  /** The time in which it drains; undefined when it does not. */
  readonly drain: DrainWindow | undefined;
}

/** Sockets of a version of a listener that workers have; the primary owns the descriptors. */
export interface WorkerSockets {
  readonly id: number;
  /** All of them: which are whose depends on their number. */
  readonly fds: readonly number[];
  /** Every worker accepts on all of them; otherwise each has some of its own. */
  readonly isShared: boolean;
  /** The first one that workers do not have yet. */
  readonly from: number;
}

/** A route configuration that changes while traffic flows. */
export interface RouteSnapshot {
  /** Never that of another one. */
  readonly id: number;
  /** See route-keys.ts; '' when only scopes refer to it. */
  readonly key: string;
  /** Undefined: it is not there yet. */
  readonly config: PackedRoutes | undefined;
}

/** Other routes in a connection manager's own configuration: connections go on, and new requests see them. */
export interface InlineRoutesSnapshot {
  /** Ids of the listener's version and of its chain. */
  readonly listener: number;
  readonly chain: number;
  readonly routes: PackedRoutes;
}

/** What a connection manager's scopes are (SRDS). */
export interface RouteScopesSnapshot {
  readonly key: string;
  readonly scopes: readonly RouteScopeSnapshot[];
}

export interface RouteScopeSnapshot {
  readonly fragments: readonly string[];
  /** Id of its route configuration. */
  readonly routes: number;
}

/** The discovered configuration of an HTTP filter as a worker needs it. */
export interface FilterConfigSnapshot {
  /** Unique among these. */
  readonly id: number;
  /** As keyOfDiscovered() makes it; another one may have had it before. */
  readonly key: string;
  /** Undefined: there is none. */
  readonly config: Any | undefined;
}

/** What changes with a version; names that are not mentioned stay as they are. */
export interface Snapshot {
  /** Grows with each snapshot. */
  readonly version: number;
  /** For a worker that begins: everything as it is at that version. */
  readonly isComplete: boolean;
  /** Memory of stats that scopes lie in and that the worker may not know. */
  readonly chunks: StatsChunks;
  /** Scopes of stats that the worker counts in, by statScopeKey(); those of clusters are with these. */
  readonly statScopes: Readonly<Record<string, ScopeRef>>;
  readonly clusters: readonly ClusterSnapshot[];
  /** Clusters that are made when they are first used. */
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
  /** Changed all together, or none when one cannot be. */
  readonly inlineRoutes: readonly InlineRoutesSnapshot[];
  /** Ids of versions that are over, and of chains of versions that go on: connections that they still have are closed. */
  readonly removedListeners: readonly number[];
  /** By key: nobody counts in them any more. */
  readonly removedStatScopes: readonly string[];
}

/** Everything that a worker begins with. */
export interface WorkerStart {
  readonly index: number;
  /** Another thread served in its place, and has died. */
  readonly isReplacement: boolean;
  readonly workers: number;
  readonly stats: WorkerStatsAttachment;
  readonly words: SharedWordsHandle;
  /** See tokenBucketMemory(). */
  readonly tokenBuckets: SharedArrayBuffer;
  /** Bytes that it may hold of requests and responses. */
  readonly bufferMemory: number;
  /** The block in the shared words that is of all listeners together. */
  readonly listenersBlock: number;
  /** The most connections of all listeners together, as the overload manager limits them; undefined: runtime does, if anything. */
  readonly maxConnections: number | undefined;
  readonly logging: Omit<LoggingOptions, 'threadId'>;
  /** As of now; `logging` says how they were at the start. */
  readonly levelRules: LevelRules;
  /** Of ServerHealth. */
  readonly health: SharedArrayBuffer;
  /** What parts of extensions on the primary have published, by name. */
  readonly extensionStates: Readonly<Record<string, unknown>>;
  readonly identity: LocalIdentity;
  readonly fileFlush: FileLogOptions;
  readonly snapshot: Snapshot;
  readonly runtime: RuntimeSnapshot;
  readonly heartbeat: HeartbeatStart;
}

export interface OpenCounts {
  readonly connections: number;
  readonly requests: number;
}

/** What a worker has open. */
export interface WorkerConnections {
  /** By id, of listeners and of chains that drain. */
  readonly listeners: ReadonlyMap<number, OpenCounts>;
  /** Sockets that are closed and still have bytes to deliver, and listeners that still accept. */
  readonly closing: number;
  readonly accepting: number;
}

export type ToWorker =
  | { readonly kind: 'snapshot'; readonly snapshot: Snapshot }
  /** Values of runtime have changed: with the part that makes the change whole, all its parts hold. */
  | { readonly kind: 'runtime'; readonly change: RuntimeChange; readonly isWhole: boolean }
  | { readonly kind: 'reopen-logs' }
  | { readonly kind: 'log-levels'; readonly rules: LevelRules }
  /** Bring the gauges of the thread's memory up to date. */
  | { readonly kind: 'count-memory' }
  /** Answer with anything: what has been said before is done. */
  | { readonly kind: 'handled'; readonly reply: MessagePort }
  /** Answer with a ThreadMemory. */
  | { readonly kind: 'memory'; readonly reply: MessagePort }
  /** Answer with a ProfileReply. */
  | { readonly kind: 'profile'; readonly command: ProfileCommand; readonly reply: MessagePort }
  /** Accept on the sockets of this listener, which listen now. */
  | { readonly kind: 'accept'; readonly id: number }
  /** Accept on these listeners no longer, and keep their sockets: 'accept' may follow. */
  | { readonly kind: 'suspend-listeners'; readonly ids: readonly number[] }
  /** Further sockets of this listener, for 'accept'. */
  | { readonly kind: 'add-sockets'; readonly sockets: WorkerSockets }
  /** What the part of an extension on the primary says to those on the workers; undefined: nothing any more. */
  | { readonly kind: 'extension-state'; readonly name: string; readonly state: unknown }
  /** Stop accepting on these listeners; with `acceptRest` what waits at their sockets is accepted first. */
  | { readonly kind: 'stop-listeners'; readonly ids: readonly number[]; readonly acceptRest: boolean }
  /** These listeners, or chains of theirs, ask their connections to end; by id. */
  | { readonly kind: 'drain'; readonly windows: ReadonlyMap<number, DrainWindow> }
  /** The listeners with these ids drain so, or (undefined) not at all, whatever was said before. */
  | { readonly kind: 'drain-changed'; readonly windows: ReadonlyMap<number, DrainWindow | undefined> }
  /** Their time to drain is over: connections end that cannot be asked to. */
  | { readonly kind: 'drain-ended'; readonly ids: readonly number[] }
  /** Answer with WorkerConnections. */
  | { readonly kind: 'connections'; readonly reply: MessagePort }
  /** Established connections leave for the child process on these channels; on each so many descriptors may be under way. */
  | { readonly kind: 'hand-over'; readonly channels: readonly number[]; readonly descriptors: number }
  /** Connections of the parent process arrive on these channels. */
  | { readonly kind: 'take-over'; readonly channels: readonly number[] }
  /** Write everything out and end. */
  | { readonly kind: 'shut-down' };

export type FromWorker =
  /** The snapshot of this version is in use; nothing older is. */
  | { readonly kind: 'applied'; readonly version: number }
  /** A configuration that the loader had accepted cannot be built. When that is a listener, 'applied' follows all the same. */
  | { readonly kind: 'failed'; readonly version: number; readonly isComplete: boolean; readonly message: string }
  /** For the part of an extension on the primary. */
  | { readonly kind: 'extension'; readonly name: string; readonly message: unknown }
  /** Files of this thread that have a logger now. */
  | { readonly kind: 'logger-files'; readonly files: readonly LoggerFile[] };
