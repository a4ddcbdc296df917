// One listener as the primary keeps it: its sockets, its stats, and what each worker is told of it.

import { randomUUID } from 'node:crypto';
import type { Any, Listener } from '../config/generated/api.js';
import type { ScopeRequest } from '../extensions/factories.js';
import type { ExtensionRegistry } from '../extensions/registry.js';
import { type Address, addressStatToken } from '../io/address.js';
import type { NativeShim } from '../io/shim.js';
import { ListenerStats, ListenerWorkerStats } from '../stats/layouts/listener.js';
import type { StatsStore } from '../stats/store.js';
import type { ScopeRef } from '../stats/thread-stats.js';
import type { ListenerSnapshot } from '../worker/messages.js';
import { DEFAULT_BUFFER_LIMIT } from '../worker/worker-listeners.js';
import { type ListenSockets, listenAddress, openListenSockets } from './listen-sockets.js';

export class PrimaryListener {
  readonly name: string;
  readonly config: Listener;
  readonly #shim: NativeShim;
  readonly #sockets: ListenSockets;
  readonly #statToken: string;
  #isStopped = false;

  /** Binds and listens. Throws ListenError. */
  constructor(config: Listener, shim: NativeShim, workers: number) {
    this.config = config;
    this.#shim = shim;
    this.name = config.name || randomUUID();
    const bindsToPort = config.bind_to_port ?? true;
    this.#sockets = bindsToPort
      ? openListenSockets(shim, config, workers)
      : { address: listenAddress(config.address), fds: [], isShared: false };
    this.#statToken = config.stat_prefix || addressStatToken(this.#sockets.address);
  }

  /** Where it listens: port 0 has become a port. */
  get address(): Address {
    return this.#sockets.address;
  }

  /** Name of the gauge of its open connections. */
  get activeConnectionsStat(): string {
    return `listener.${this.#statToken}.downstream_cx_active`;
  }

  get isStopped(): boolean {
    return this.#isStopped;
  }

  /** Makes the scopes that the listener and its filters count in, so that they exist before traffic. */
  addScopes(store: StatsStore, extensions: ExtensionRegistry, workers: number, scopes: Record<string, ScopeRef>): void {
    const prefix = `listener.${this.#statToken}.`;
    const requests: ScopeRequest[] = [{ prefix, layout: ListenerStats }];
    for (let index = 0; index < workers; index++)
      requests.push({ prefix: `${prefix}worker_${index}.`, layout: ListenerWorkerStats });
    const bufferLimit = this.config.per_connection_buffer_limit_bytes ?? DEFAULT_BUFFER_LIMIT;
    const identity = { name: this.name, statToken: this.#statToken, bufferLimit };
    for (const chain of this.config.filter_chains ?? []) {
      for (const filter of chain.filters ?? []) {
        const config: Any = filter.typed_config!;
        requests.push(...extensions.networkFilter(config).scopes(config, identity));
      }
    }
    for (const request of requests) scopes[request.prefix] = store.addScope(request.prefix, request.layout);
  }

  snapshot(worker: number): ListenerSnapshot {
    const { fds, isShared } = this.#sockets;
    return {
      name: this.name,
      config: this.config,
      statToken: this.#statToken,
      fd: this.#isStopped ? undefined : fds[isShared ? 0 : worker],
      isShared: isShared && fds.length > 0,
    };
  }

  /** Closes the sockets: workers accept on copies, and are told on their own. */
  stop(): void {
    if (this.#isStopped) return;
    this.#isStopped = true;
    for (const fd of this.#sockets.fds) this.#shim.closeDescriptor(fd);
  }
}
