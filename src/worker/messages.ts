// What the primary and a worker say to each other. All of it is plain data.

import type { Listener } from '../config/generated/api.js';
import type { LocalIdentity } from '../http/forwarding-headers.js';
import type { LoggingOptions } from '../log/logger.js';
import type { ScopeRef, StatsChunks, WorkerStatsAttachment } from '../stats/thread-stats.js';
import type { ClusterSnapshot } from '../upstream/cluster-snapshot.js';
import type { SharedWordsHandle } from '../upstream/shared-words.js';

/** A listener as a worker needs it. */
export interface ListenerSnapshot {
  readonly name: string;
  readonly config: Listener;
  /** Token of the listener in stat names. */
  readonly statToken: string;
  /** The socket that this worker accepts on; undefined with bind_to_port: false. The primary owns the descriptor. */
  readonly fd: number | undefined;
  /** Other workers accept on the same socket. */
  readonly isShared: boolean;
}

/** What changes with a version; names that are not mentioned stay as they are. */
export interface Snapshot {
  /** Grows with each snapshot. */
  readonly version: number;
  /** Memory of stats that the scopes lie in and that the worker may not know. */
  readonly chunks: StatsChunks;
  /** Scopes of listeners and their filters, by prefix. */
  readonly scopes: Readonly<Record<string, ScopeRef>>;
  readonly clusters: readonly ClusterSnapshot[];
  readonly removedClusters: readonly string[];
  readonly listeners: readonly ListenerSnapshot[];
  readonly removedListeners: readonly string[];
}

/** Everything that a worker begins with. */
export interface WorkerStart {
  readonly index: number;
  readonly workers: number;
  readonly stats: WorkerStatsAttachment;
  readonly words: SharedWordsHandle;
  readonly logging: Omit<LoggingOptions, 'threadId'>;
  readonly identity: LocalIdentity;
  readonly fileFlush: { readonly flushMinBytes: number; readonly flushIntervalMs: number };
  readonly snapshot: Snapshot;
}

export type ToWorker =
  | { readonly kind: 'snapshot'; readonly snapshot: Snapshot }
  | { readonly kind: 'reopen-logs' }
  /** Stop accepting on these listeners, or on all. */
  | { readonly kind: 'stop-listeners'; readonly names: readonly string[] }
  /** Write everything out and end. */
  | { readonly kind: 'shut-down' };

export type FromWorker =
  /** The snapshot of this version is in use; nothing older is. */
  | { readonly kind: 'applied'; readonly version: number }
  /** A configuration that the loader had accepted cannot be built. */
  | { readonly kind: 'failed'; readonly message: string };
