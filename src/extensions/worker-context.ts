// What a worker gives to the extensions that it builds its runtime objects from.

import type { AccessLogFiles } from '../access-log/file-log.js';
import type { LocalIdentity } from '../http/forwarding-headers.js';
import type { HeaderBlockPool } from '../http/header-block.js';
import type { Layout } from '../stats/layout.js';
import type { Scope } from '../stats/thread-stats.js';
import type { ClusterManager } from '../upstream/cluster-manager.js';
import type { UpstreamThread } from '../upstream/upstream-thread.js';
import type { ExtensionRegistry } from './registry.js';

export interface WorkerContext extends UpstreamThread {
  readonly clusters: ClusterManager;
  readonly accessLogFiles: AccessLogFiles;
  readonly extensions: ExtensionRegistry;
  readonly headerBlocks: HeaderBlockPool;
  readonly identity: LocalIdentity;
  /** The scope that the primary has made for `prefix` (see ScopeRequest). Throws when the configuration asked for none. */
  scope(prefix: string, layout: Layout): Scope;
}

/** The listener that a filter chain belongs to, as its filters see it. */
export interface ListenerIdentity {
  readonly name: string;
  /** Stat prefix: stat_prefix, or the address with '_' for ':'. */
  readonly statToken: string;
  /** per_connection_buffer_limit_bytes. */
  readonly bufferLimit: number;
}

/** A scope whose stats exist at 0 before traffic: the primary makes it when the configuration is loaded. */
export interface ScopeRequest {
  /** With the final dot: `http.ingress.` */
  readonly prefix: string;
  readonly layout: Layout;
}

/** What the filters of one HTTP chain have in common. */
export interface HttpChainContext {
  /** Most bytes that a filter may hold back of a message. */
  readonly bufferLimit: number;
}
