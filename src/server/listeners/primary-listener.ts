// One listener as the primary keeps it: its sockets, its stats, and what each worker is told of it.

import { randomUUID } from 'node:crypto';
import { filterChainsOf } from '../../config/filter-chains.js';
import type { Any, Listener } from '../../config/generated/api.js';
import type { ScopeRequest } from '../../extensions/factories.js';
import type { ExtensionRegistry } from '../../extensions/registry.js';
import { type Address, addressText } from '../../io/address.js';
import type { NativeShim } from '../../io/shim.js';
import type { DrainWindow } from '../../listener/drain-window.js';
import type { Offer } from '../../restart/parent-end.js';
import { ListenerStats, ListenerWorkerStats } from '../../stats/layouts/listener.js';
import { scopePrefix } from '../../stats/scope-prefix.js';
import type { StatsStore } from '../../stats/store.js';
import type { ScopeRef } from '../../stats/thread-stats.js';
import type { ChainSnapshot, ListenerSnapshot } from '../../worker/messages.js';
import { DEFAULT_BUFFER_LIMIT } from '../../worker/worker-listeners.js';
import type { InheritedSockets } from './inherited-sockets.js';
import {
  type ListenSockets,
  listenAddress,
  openListenSockets,
  socketTraits,
  startListening,
} from './listen-sockets.js';

export class PrimaryListener {
  /** Unique in the process. */
  readonly id = newId();
  readonly name: string;
  readonly config: Listener;
  readonly #shim: NativeShim;
  readonly #workers: number;
  readonly #chains: readonly ChainSnapshot[];
  #sockets: ListenSockets;
  readonly #statToken: string;
  readonly #block: number;
  #isStopped = false;
  #isClosed = false;

  /** Binds and listens, or takes the sockets of `parent`. `block` is its own in the shared words. Throws ListenError. */
  constructor(
    config: Listener,
    shim: NativeShim,
    workers: number,
    block: number,
    parent: InheritedSockets | undefined,
  ) {
    this.config = config;
    this.#chains = filterChainsOf(config).map((chain) => ({
      id: newId(),
      config: chain,
      isDefault: chain === config.default_filter_chain,
    }));
    this.#block = block;
    this.#shim = shim;
    this.#workers = workers;
    this.name = config.name || randomUUID();
    const bindsToPort = config.bind_to_port ?? true;
    this.#sockets = bindsToPort
      ? openListenSockets(shim, config, workers, parent)
      : { address: listenAddress(config.address), fds: [], isShared: false, isReusePort: false, isListening: true };
    this.#statToken = scopePrefix(config.stat_prefix || addressText(this.#sockets.address));
  }

  /** Where it listens: port 0 has become a port. */
  get address(): Address {
    return this.#sockets.address;
  }

  /** Of its own scope of stats. */
  get statPrefix(): string {
    return `listener.${this.#statToken}.`;
  }

  get isStopped(): boolean {
    return this.#isStopped;
  }

  /** Makes the scopes that the listener and its filters count in, so that they exist before traffic. */
  addScopes(store: StatsStore, extensions: ExtensionRegistry, workers: number, scopes: Record<string, ScopeRef>): void {
    const prefix = this.statPrefix;
    const requests: ScopeRequest[] = [{ prefix, layout: ListenerStats }];
    for (let index = 0; index < workers; index++)
      requests.push({ prefix: `${prefix}worker_${index}.`, layout: ListenerWorkerStats });
    const bufferLimit = this.config.per_connection_buffer_limit_bytes ?? DEFAULT_BUFFER_LIMIT;
    const identity = { name: this.name, statToken: this.#statToken, bufferLimit };
    for (const chain of filterChainsOf(this.config)) {
      for (const filter of chain.filters ?? []) {
        const config: Any = filter.typed_config!;
        requests.push(...extensions.networkFilter(config).scopes(config, identity, extensions));
      }
    }
    // Chains may count in the same scope.
    const layouts = new Map(requests.map((request) => [request.prefix, request.layout]));
    for (const [scope, layout] of layouts) scopes[scope] = store.addScope(scope, layout);
  }

  snapshot(worker: number, drain: DrainWindow | undefined): ListenerSnapshot {
    const { isShared, isListening } = this.#sockets;
    return {
      id: this.id,
      name: this.name,
      config: this.config,
      chains: this.#chains,
      statToken: this.#statToken,
      block: this.#block,
      fds: this.#isStopped || !isListening ? [] : this.#socketsOf(worker),
      isShared,
      drain,
    };
  }

  /** All its sockets listen from now on. Returns what workers that run already are to accept on. Throws ListenError. */
  startListening(): { readonly fds: readonly number[][]; readonly isShared: boolean } {
    const { isListening, isShared } = this.#sockets;
    if (this.#isStopped || isListening) return { fds: [], isShared };
    this.#sockets = startListening(this.#shim, this.config, this.#sockets);
    return { fds: Array.from({ length: this.#workers }, (_, worker) => this.#socketsOf(worker)), isShared };
  }

  /** Its sockets for a child process; undefined when it has none that are open. */
  offer(id: number): Offer | undefined {
    const { address, fds, isListening, isReusePort } = this.#sockets;
    if (this.#isStopped || !isListening || fds.length === 0) return undefined;
    return {
      id,
      isAdmin: false,
      name: this.config.name ?? '',
      configured: addressText(listenAddress(this.config.address)),
      real: addressText(address),
      traits: socketTraits(this.config),
      isReusePort,
      fds,
    };
  }

  /** Workers are given its sockets no longer. Those that have them are told on their own. */
  stop(): void {
    this.#isStopped = true;
  }

  /** Those that a worker accepts on. */
  #socketsOf(worker: number): number[] {
    const { fds, isShared } = this.#sockets;
    return fds.filter((_, index) => isShared || index % this.#workers === worker);
  }

  /** stop(), and closes the sockets, which no worker is about to copy any more. */
  close(): void {
    this.stop();
    if (this.#isClosed) return;
    this.#isClosed = true;
    for (const fd of this.#sockets.fds) this.#shim.closeDescriptor(fd);
  }
}

let lastId = 0;

/** A number that no listener and no filter chain has had. */
function newId(): number {
  return ++lastId;
}
