// The kinds of extensions and how each is built. `C` is the message that configures it, as the loader has checked it.

import type { AccessLogger } from '../access-log/access-logger.js';
import type { Extension } from '../config/extension.js';
import type { Any } from '../config/generated/api.js';
import type { HttpFilterFactory, TerminalFilterFactory } from '../http/filter.js';
import type { TerminalNetworkFilter } from '../listener/network-filter.js';
import type { HttpChainContext, ListenerIdentity, ScopeRequest, WorkerContext } from './worker-context.js';

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

export type AnyExtension =
  | NetworkFilterExtension
  | HttpFilterExtension
  | TerminalHttpFilterExtension
  | AccessLoggerExtension;
