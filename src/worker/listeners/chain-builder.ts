// Builds the filter chains of one worker, and new routes for existing chains. Long routes are built in steps, between which
// requests are served, before their snapshot is applied.

import type { ChainNames } from '../../access-log/stream/stream-info.js';
import { inBatches, runSync } from '../../common/time/next-turn.js';
import { bufferLimitBytes } from '../../config/fields/buffer-limit.js';
import type { Any, TrafficDirection } from '../../config/generated/api.js';
import type {
  ChainIdentity,
  NetworkFilterExtension,
  SharedConnectionCount,
  TerminalNetworkFilterExtension,
  WorkerContext,
} from '../../extensions/factories.js';
import { DownstreamConnection } from '../../listener/downstream-connection.js';
import { FilterChainTable } from '../../listener/filter-chain-match.js';
import { FilteredConnection } from '../../listener/filters/filtered-connection.js';
import { closeFilters, FilteredTerminal } from '../../listener/filters/filtered-terminal.js';
import { ListenerDrain } from '../../listener/listener-drain.js';
import type {
  FilterChain,
  FilterChainFinder,
  NetworkFilterFactory,
  TerminalNetworkFilter,
} from '../../listener/network-filter.js';
import type { ServerTls } from '../../listener/server-tls.js';
import { TlsFactoryStats, TlsStats } from '../../stats/layouts/tls.js';
import { HandshakeStats } from '../../tls/handshake-stats.js';
import { KeyLog } from '../../tls/key-log.js';
import type { SharedWords } from '../../upstream/shared-words.js';
import type {
  ChainSnapshot,
  ChainTls,
  InlineRoutesSnapshot,
  ListenerSnapshot,
  Snapshot,
} from '../messages/messages.js';
import { BATCH, isLong, type PackedRoutes, type UnpackedRoutes, unpackRoutes } from '../messages/packed-routes.js';
import { chainFingerprint } from './chain-fingerprint.js';

/** Returns the chain with this id; undefined: the worker has none. */
export type ChainOf = (listener: number, chain: number) => FilterChain | undefined;

export class ChainBuilder {
  readonly #context: WorkerContext;
  readonly #chainOf: ChainOf;
  /** What prepare() has built for the next snapshot. */
  readonly #chains = new Map<ChainSnapshot, FilterChain>();
  readonly #changes = new Map<InlineRoutesSnapshot, () => void>();

  constructor(context: WorkerContext, chainOf: ChainOf) {
    this.#context = context;
    this.#chainOf = chainOf;
  }

  /** Builds in steps the parts of a snapshot with long routes. Failures are left to chain() and routesChange(). */
  *prepare({ inlineRoutes, listeners }: Pick<Snapshot, 'inlineRoutes' | 'listeners'>): Generator<void, void> {
    for (const { terminal } of this.#chains.values()) terminal.close?.();
    this.#chains.clear();
    this.#changes.clear();
    try {
      for (const listener of listeners) {
        for (const chain of listener.chains) {
          const isLongOne = chain.routes !== undefined && isLong(chain.routes);
          if (!isLongOne || this.#chainOf(listener.id, chain.id) !== undefined) continue;
          this.#chains.set(chain, yield* this.#chainSteps(listener, chain));
        }
      }
      for (const routes of inlineRoutes) {
        if (!isLong(routes.routes) || this.#chainOf(routes.listener, routes.chain) === undefined) continue;
        this.#changes.set(routes, yield* this.#changeSteps(routes));
      }
    } catch {
      return;
    }
  }

  /** Returns the chain that prepare() has built, or builds it now. Throws when it cannot be built. */
  chain(listener: ListenerSnapshot, chain: ChainSnapshot): FilterChain {
    const prepared = this.#chains.get(chain);
    this.#chains.delete(chain);
    return prepared ?? runSync(this.#chainSteps(listener, chain));
  }

  /** Returns a function that sets the chain's routes. Throws when they cannot be built. */
  routesChange(routes: InlineRoutesSnapshot): () => void {
    return this.#changes.get(routes) ?? runSync(this.#changeSteps(routes));
  }

  *#changeSteps({ chain, listener, routes }: InlineRoutesSnapshot): Generator<void, () => void> {
    // A removed version takes no more requests.
    const terminal = this.#chainOf(listener, chain)?.terminal;
    return terminal === undefined ? () => {} : yield* routesChange(terminal, routes);
  }

  *#chainSteps(
    { config: listener, drain: window, name, statToken }: ListenerSnapshot,
    { config, counts, id, routes, tls }: ChainSnapshot,
  ): Generator<void, FilterChain> {
    const drain = new ListenerDrain(listener.drain_type === 'MODIFY_ONLY' ? undefined : this.#context.serverHealth);
    drain.window = window;
    const bufferLimit = bufferLimitBytes(listener.per_connection_buffer_limit_bytes);
    const names = {
      filterChainName: config.name ?? '',
      metadata: config.metadata,
      listenerMetadata: listener.metadata,
      ...directionOf(listener.traffic_direction),
    };
    const nextCount = countsIn(this.#context.words, counts);
    const isOutbound = listener.traffic_direction === 'OUTBOUND';
    const identity: ChainIdentity = { name, names, statToken, bufferLimit, isOutbound, chain: id, nextCount };
    const { filters, terminal } = this.#filters(
      (config.filters ?? []).map(({ typed_config: filter }) => filter!),
      identity,
    );
    try {
      if (routes !== undefined) (yield* routesChange(terminal, routes))();
    } catch (error) {
      terminal.close?.();
      throw error;
    }
    return {
      id,
      name: config.name ?? '',
      Connection: filters.length === 0 ? DownstreamConnection : FilteredConnection,
      terminal,
      drain,
      isTls: tls !== undefined,
      names,
      overload: listener.bypass_overload_manager ? undefined : this.#context.overload,
      tls: tls && this.#tls(tls, statToken),
      fingerprint: () => chainFingerprint(listener.address, config),
    };
  }

  #tls({ context, keyLog, timeoutMs }: ChainTls, statToken: string): ServerTls {
    const { stats, timers } = this.#context;
    const prefix = `listener.${statToken}.ssl.`;
    const factory = {
      scope: this.#context.scope(`listener.${statToken}.server_ssl_socket_factory.`, TlsFactoryStats),
      notReady: TlsFactoryStats.at.downstream_context_secrets_not_ready,
    };
    return {
      context,
      timeoutMs,
      timers,
      keyLog: keyLog && new KeyLog(keyLog),
      stats: new HandshakeStats(this.#context.scope(prefix, TlsStats), stats, prefix, factory),
    };
  }

  /** Builds the filters of a chain, and the terminal that accepts connections for all of them. Throws, with nothing left open. */
  #filters(configs: readonly Any[], identity: ChainIdentity): Filters {
    const filters: NetworkFilterFactory[] = [];
    const { timers, transport } = this.#context;
    const report = (error: unknown, what: string) => transport.report(error, what);
    try {
      for (const config of configs) {
        const extension = this.#context.extensions.networkFilter(config);
        if (extension.isTerminal) {
          const terminal = this.#terminal(extension, config, identity);
          if (filters.length === 0) return { filters, terminal };
          const maxHeldBytes = identity.bufferLimit;
          return { filters, terminal: new FilteredTerminal(filters, terminal, maxHeldBytes, timers, report) };
        }
        filters.push(this.#filter(extension, config, identity));
      }
      return { filters: [], terminal: NO_FILTERS };
    } catch (error) {
      closeFilters(filters, report);
      throw error;
    }
  }

  #filter(extension: NetworkFilterExtension, config: Any, identity: ChainIdentity): NetworkFilterFactory {
    const factory = extension.createOnWorker(config, identity, this.#context);
    if (typeof factory?.create === 'function') return factory;
    throw new TypeError(`createOnWorker() of '${extension.name}' returned no object with a create()`);
  }

  #terminal(extension: TerminalNetworkFilterExtension, config: Any, identity: ChainIdentity): TerminalNetworkFilter {
    const terminal = extension.createOnWorker(config, identity, this.#context);
    if (typeof terminal?.accept === 'function') return terminal;
    throw new TypeError(`createOnWorker() of '${extension.name}' returned no object with an accept()`);
  }
}

function directionOf(direction: TrafficDirection | undefined): Pick<ChainNames, 'direction'> {
  return direction === 'INBOUND' ? { direction: 1 } : direction === 'OUTBOUND' ? { direction: 2 } : {};
}

/** See ChainIdentity.nextCount(). Filters are created in the same order on all workers. */
function countsIn(words: SharedWords, block: number | undefined): () => SharedConnectionCount {
  let next = block;
  return () => {
    if (next === undefined) throw new RangeError('the extension must set countsConnections');
    const word = next++;
    return { tryAcquire: (limit) => words.tryAcquire(word, limit), release: () => words.release(word) };
  };
}

interface Filters {
  /** The filters before the terminal one. */
  readonly filters: readonly NetworkFilterFactory[];
  readonly terminal: TerminalNetworkFilter;
}

/** Unpacks and builds routes. Returns a function that sets them. */
function* routesChange(terminal: FilterChain['terminal'], routes: PackedRoutes): Generator<void, () => void> {
  const unpacked = yield* unpackRoutes(routes, ownRoutes.get(terminal));
  const steps = terminal.prepareRoutes?.(unpacked.config);
  const change = steps && (yield* inBatches(steps, BATCH));
  return () => {
    change?.();
    if (isLong(routes)) ownRoutes.set(terminal, unpacked);
    else ownRoutes.delete(terminal);
  };
}

/** Unpacked long routes of terminals, for reuse by the next version. */
const ownRoutes = new WeakMap<FilterChain['terminal'], UnpackedRoutes>();

/** Returns the finder for a version's chains, which are in the order of the snapshots. */
export function finderOf(snapshots: readonly ChainSnapshot[], chains: readonly FilterChain[]): FilterChainFinder {
  const fallback = chains.find((_, index) => snapshots[index]!.isDefault);
  const matched = snapshots.flatMap(({ config, isDefault }, index) =>
    isDefault ? [] : [{ match: config.filter_chain_match, chain: chains[index]! }],
  );
  return new FilterChainTable(matched, fallback);
}

/** The terminal of a chain without filters closes its connections. */
const NO_FILTERS: FilterChain['terminal'] = {
  accept(connection) {
    connection.close(0);
    return undefined;
  },
};
