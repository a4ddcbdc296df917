// One filter chain of a listener on the primary: the stat scopes of its filters, and their parts.

import { callExtension } from '../../../common/errors/defects.js';
import { BatonError } from '../../../common/errors/errors.js';
import { durationMs } from '../../../common/time/duration.js';
import { ownRoutes } from '../../../config/fields/own-routes.js';
import type { DownstreamTlsContext, FilterChain, RouteConfiguration } from '../../../config/generated/api.js';
import { messageNameOf } from '../../../config/schema/message-name.js';
import type { ListenerIdentity, PrimaryPart } from '../../../extensions/factories.js';
import type { ExtensionRegistry } from '../../../extensions/registry.js';
import { TlsFactoryStats, TlsStats } from '../../../stats/layouts/tls.js';
import type { ScopeRequest } from '../../../stats/store.js';
import type { TlsContexts, TlsContextUse } from '../../../tls/tls-contexts.js';
import { LISTENER_WORDS, type SharedWordsOwner } from '../../../upstream/shared-words.js';
import type { ChainSnapshot, InlineRoutesSnapshot } from '../../../worker/messages/messages.js';
import { type PackedRoutes, packRoutes } from '../../../worker/messages/packed-routes.js';
import type { InitManager } from '../../init/init-manager.js';
import type { HeldScopes, WorkerScopes } from '../../workers/worker-scopes.js';
import type { FilterParts } from './filter-parts.js';
import { newId, type PublishedItem } from './published-item.js';

export interface ChainContext {
  readonly extensions: ExtensionRegistry;
  readonly scopes: WorkerScopes;
  readonly parts: FilterParts;
  readonly tls: TlsContexts;
  readonly words: SharedWordsOwner;
}

export class PrimaryChain implements PublishedItem {
  readonly id = newId();
  readonly isDefault: boolean;
  readonly scopes: HeldScopes;
  #config: FilterChain;
  /** Its inline routes as last published. */
  #packed: PackedRoutes | undefined;
  readonly #part: PrimaryPart;
  /** Undefined: its connections are plain. */
  readonly #tls: TlsContextUse | undefined;
  readonly #words: SharedWordsOwner;
  /** See ChainSnapshot. */
  readonly #counts: number | undefined;

  /** `init` waits for the filters' targets. Throws, with nothing left behind, when a filter cannot be used as configured. */
  constructor(
    config: FilterChain,
    isDefault: boolean,
    listener: ListenerIdentity,
    { extensions, parts, scopes, tls, words }: ChainContext,
    init: InitManager,
  ) {
    this.#config = config;
    this.isDefault = isDefault;
    this.scopes = scopes.hold([
      ...(tlsContextOf(config) === undefined ? [] : tlsScopes(listener)),
      ...(config.filters ?? []).flatMap(({ typed_config: filter }) => {
        const extension = extensions.networkFilter(filter!);
        return callExtension('scopes', extension.name, () => extension.scopes?.(filter!, listener, extensions) ?? []);
      }),
    ]);
    try {
      const context = tlsContextOf(config);
      this.#tls =
        context &&
        tls.server(context, config.filter_chain_match?.server_names ?? [], {
          statPrefix: sslPrefix(listener),
          factoryStats: scopes.scope(factoryPrefix(listener), TlsFactoryStats),
          waitFor: (name, isLocal) => init.add(name, isLocal),
        });
      this.#words = words;
      this.#counts = allocateCounts(config, extensions, words);
      this.#part = parts.create(config, init);
    } catch (error) {
      this.#tls?.release();
      if (this.#counts !== undefined) words.retireListener(this.#counts, 0);
      this.scopes.discard();
      throw error;
    }
  }

  get snapshot(): ChainSnapshot {
    const { id, isDefault } = this;
    const routes = routesOf(this.#config);
    const config = withoutSecrets(withoutRoutes(this.#config));
    const timeoutMs = durationMs(config.transport_socket_connect_timeout, HANDSHAKE_MS);
    const keyLog = tlsContextOf(this.#config)?.common_tls_context?.key_log;
    const tls = this.#tls && { context: this.#tls.number, timeoutMs, keyLog };
    return { id, isDefault, config, routes: routes && this.#pack(routes), tls, counts: this.#counts };
  }

  get config(): FilterChain {
    return this.#config;
  }

  /** See PrimaryListener.prepareRoutes(). */
  prepareRoutes(config: FilterChain): () => Omit<InlineRoutesSnapshot, 'listener'> {
    const change = this.#part.prepareRoutes?.(config.filters!.at(-1)!.typed_config!);
    return () => {
      change?.();
      this.#config = config;
      return { chain: this.id, routes: this.#pack(routesOf(config) ?? {}) };
    };
  }

  #pack(routes: RouteConfiguration): PackedRoutes {
    this.#packed = packRoutes(routes, this.#packed);
    return this.#packed;
  }

  /** See PublishedItem. */
  retire(): string[] {
    return this.scopes.retire();
  }

  free(): void {
    this.#close();
    this.scopes.free();
  }

  /** Discards a chain that was never published. */
  discard(): void {
    this.#close();
    this.scopes.discard();
  }

  #close(): void {
    this.#part.close();
    this.#tls?.release();
    if (this.#counts !== undefined) this.#words.retireListener(this.#counts, 0);
  }
}

/** Returns the block for the counts of the chain's filters, or undefined. Throws a BatonError if they are too many for a block. */
function allocateCounts(
  { filters = [] }: FilterChain,
  extensions: ExtensionRegistry,
  words: SharedWordsOwner,
): number | undefined {
  let counts = 0;
  for (const { typed_config: config } of filters) {
    const extension = extensions.networkFilter(config!);
    if (!extension.isTerminal && extension.countsConnections) counts++;
  }
  if (counts === 0) return undefined;
  if (counts <= LISTENER_WORDS) return words.allocateListener();
  throw new BatonError('CONFIG_INVALID', `at most ${LISTENER_WORDS} filters of a chain may count connections`);
}

/** Envoy's default of transport_socket_connect_timeout for servers. */
const HANDSHAKE_MS = 15_000;

const TLS = 'envoy.extensions.transport_sockets.tls.v3.DownstreamTlsContext';

/** Returns undefined for plain connections. */
function tlsContextOf({ transport_socket: socket }: FilterChain): DownstreamTlsContext | undefined {
  const config = socket?.typed_config;
  return config !== undefined && messageNameOf(config['@type']) === TLS ? (config as DownstreamTlsContext) : undefined;
}

function tlsScopes(listener: ListenerIdentity): ScopeRequest[] {
  return [
    { prefix: sslPrefix(listener), layout: TlsStats },
    { prefix: factoryPrefix(listener), layout: TlsFactoryStats },
  ];
}

function sslPrefix({ statToken }: ListenerIdentity): string {
  return `listener.${statToken}.ssl.`;
}

function factoryPrefix({ statToken }: ListenerIdentity): string {
  return `listener.${statToken}.server_ssl_socket_factory.`;
}

/** Workers need no secrets: the primary has made the context. */
function withoutSecrets(chain: FilterChain): FilterChain {
  return tlsContextOf(chain) === undefined
    ? chain
    : { ...chain, transport_socket: { name: chain.transport_socket!.name ?? '' } };
}

/** Returns the routes in the configuration of the chain's connection manager. */
function routesOf({ filters = [] }: FilterChain): RouteConfiguration | undefined {
  return ownRoutes(filters.at(-1)?.typed_config);
}

function withoutRoutes(chain: FilterChain): FilterChain {
  if (routesOf(chain) === undefined) return chain;
  const { filters = [] } = chain;
  const terminal = filters.at(-1)!;
  const typed_config = { ...terminal.typed_config!, route_config: undefined };
  return { ...chain, filters: [...filters.slice(0, -1), { ...terminal, typed_config }] };
}
