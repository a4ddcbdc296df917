// The kinds of extensions, how each is built, and what a worker gives them for it. `C` is the message that configures an
// extension, as the loader has checked it.

import type { AccessLogger } from '../access-log/access-logger.js';
import type { AccessLogFiles } from '../access-log/file-log.js';
import type { Extension } from '../config/extension.js';
import type { Any } from '../config/generated/api.js';
import type { HttpFilterFactory, TerminalFilterFactory } from '../http/filter.js';
import type { LocalIdentity } from '../http/forwarding-headers.js';
import type { HeaderBlockPool } from '../http/header-block.js';
import type { TerminalNetworkFilter } from '../listener/network-filter.js';
import type { Layout } from '../stats/layout.js';
import type { Scope } from '../stats/thread-stats.js';
import type { ClusterManager } from '../upstream/cluster-manager.js';
import type { UpstreamThread } from '../upstream/upstream-thread.js';

export interface NetworkFilterExtension<C = unknown> extends Extension {
  readonly category: 'envoy.filters.network';
  /** Stats that exist before traffic. */
  scopes(config: C, listener: ListenerIdentity): ScopeRequest[];
  createOnWorker(config: C, listener: ListenerIdentity, context: WorkerContext): TerminalNetworkFilter;
}

export interface HttpFilterExtension<C = unknown> extends Extension {
  readonly category: 'envoy.filters.http';
  readonly isTerminal?: false;
  createOnWorker(config: C, context: WorkerContext, chain: HttpChainContext): HttpFilterFactory;
  /**
   * Compiles what a route says to the filter (typed_per_filter_config), the most general first; the filter's factory gets
   * it with each stream. Absent: the filter takes nothing from routes.
   */
  compileRouteConfig?(configs: readonly Any[], where: string): unknown;
}

/** An HTTP filter that ends the chain: the router. */
export interface TerminalHttpFilterExtension<C = unknown> extends Extension {
  readonly category: 'envoy.filters.http';
  readonly isTerminal: true;
  createOnWorker(config: C, context: WorkerContext, chain: HttpChainContext): TerminalFilterFactory;
}

export interface AccessLoggerExtension<C = unknown> extends Extension {
  readonly category: 'envoy.access_loggers';
  createOnWorker(config: C, context: WorkerContext): AccessLogger;
}

/** Options of clusters, which are read where clusters are configured: nothing is built from the extension. */
export interface UpstreamOptionsExtension extends Extension {
  readonly category: 'envoy.upstream_options';
}

export type AnyExtension =
  | UpstreamOptionsExtension
  | NetworkFilterExtension
  | HttpFilterExtension
  | TerminalHttpFilterExtension
  | AccessLoggerExtension;

/** Finds the extension that a typed_config names. */
export interface ExtensionFinder {
  networkFilter(config: Any): NetworkFilterExtension;
  httpFilter(config: Any): HttpFilterExtension | TerminalHttpFilterExtension;
  accessLogger(config: Any): AccessLoggerExtension;
}

/** What a worker gives to the extensions that it builds its runtime objects from. */
export interface WorkerContext extends UpstreamThread {
  readonly clusters: ClusterManager;
  readonly accessLogFiles: AccessLogFiles;
  readonly extensions: ExtensionFinder;
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
