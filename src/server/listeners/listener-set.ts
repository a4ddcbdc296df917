// The listeners as the primary keeps them: their sockets are bound here, before any worker accepts on them.

import type { Listener } from '../../config/generated/api.js';
import type { ExtensionRegistry } from '../../extensions/registry.js';
import { addressText } from '../../io/address.js';
import type { NativeShim } from '../../io/shim.js';
import type { DrainWindow } from '../../listener/drain-window.js';
import { getLogger } from '../../log/logger.js';
import type { Offer } from '../../restart/parent-end.js';
import { ListenerManagerStats, ListenerStats } from '../../stats/layouts/listener.js';
import type { StatsStore } from '../../stats/store.js';
import type { Scope, ScopeRef } from '../../stats/thread-stats.js';
import type { SharedWordsOwner } from '../../upstream/shared-words.js';
import type { ListenerSnapshot, ToWorker } from '../../worker/messages.js';
import type { InheritedSockets } from './inherited-sockets.js';
import { PrimaryListener } from './primary-listener.js';
import { StoppedDirections } from './stopped-directions.js';

const logger = getLogger('main');

export interface ListenerSetHost {
  readonly shim: NativeShim;
  readonly store: StatsStore;
  readonly words: SharedWordsOwner;
  readonly extensions: ExtensionRegistry;
  readonly workers: number;
  /** Sockets of a parent process to take over. */
  readonly parent: InheritedSockets | undefined;
  /** Scopes by prefix, as workers are told of them: those of listeners are added. */
  readonly scopes: Record<string, ScopeRef>;
  /** The time in which a listener drains; undefined when it does not. */
  drainOf(listener: Listener): DrainWindow | undefined;
}

export class ListenerSet {
  readonly #host: ListenerSetHost;
  readonly #stats: Scope;
  readonly #listeners = new Map<string, PrimaryListener>();
  readonly #stoppedDirections = new StoppedDirections();
  #offered: readonly PrimaryListener[] = [];

  /** `stats` is the scope listener_manager. */
  constructor(host: ListenerSetHost, stats: Scope) {
    this.#host = host;
    this.#stats = stats;
  }

  get byName(): ReadonlyMap<string, PrimaryListener> {
    return this.#listeners;
  }

  /** Binds all listeners. Throws ListenError. */
  open(configs: readonly Listener[]): void {
    const { shim, store, words, extensions, workers, scopes, parent } = this.#host;
    const { at } = ListenerManagerStats;
    logger.info(`loading ${configs.length} listener(s)`);
    for (const config of configs) {
      const listener = new PrimaryListener(config, shim, workers, words.allocateListener(), parent);
      this.#listeners.set(listener.name, listener);
      listener.addScopes(store, extensions, workers, scopes);
      this.#stats.increment(at.listener_added);
      this.#stats.increment(at.listener_create_success);
      logger.info(`listener '${listener.name}' listens on ${addressText(listener.address)}`);
      // It was told to stop before it began.
      if (this.#stoppedDirections.includes(config)) listener.close();
    }
    this.#stats.set(at.total_listeners_active, this.#listeners.size);
  }

  /** Marks as stopped what accepts for that traffic, now and later. Returns the listeners that did; their sockets are open. */
  stop(inboundOnly: boolean): PrimaryListener[] {
    this.#stoppedDirections.add(inboundOnly);
    const isMeant = (each: PrimaryListener) => !each.isStopped && this.#stoppedDirections.includes(each.config);
    const listeners = [...this.#listeners.values()].filter(isMeant);
    for (const listener of listeners) {
      listener.stop();
      this.#stats.increment(ListenerManagerStats.at.listener_stopped);
      logger.info(`listener '${listener.name}' is stopped`);
    }
    return listeners;
  }

  /**
   * All sockets listen from now on. Returns what workers that run already are to be told: until then none of them accepts
   * where a parent process does. Throws ListenError.
   */
  startListening(): { readonly worker: number; readonly message: ToWorker }[] {
    const messages: { worker: number; message: ToWorker }[] = [];
    for (const listener of this.#listeners.values()) {
      const { id } = listener;
      const { fds: byWorker, isShared } = listener.startListening();
      for (const [worker, fds] of byWorker.entries()) {
        if (fds.length > 0) messages.push({ worker, message: { kind: 'accept', id, fds, isShared } });
      }
    }
    return messages;
  }

  /** What a child process may take over. */
  offers(): Offer[] {
    this.#offered = [...this.#listeners.values()];
    return this.#offered.flatMap((listener, id) => listener.offer(id) ?? []);
  }

  /** The listeners whose sockets have these numbers in the last offers(). */
  withNumbers(ids: ReadonlySet<number>): Set<PrimaryListener> {
    return new Set(this.#offered.filter((_, id) => ids.has(id)));
  }

  snapshots(worker: number): ListenerSnapshot[] {
    return [...this.#listeners.values()].map((listener) =>
      listener.snapshot(worker, this.#host.drainOf(listener.config)),
    );
  }

  /** `ofParent` tells what a gauge of that name has of a parent process. */
  connectionCount(ofParent: (name: string) => number): number {
    const { scopes, store } = this.#host;
    let sum = 0;
    for (const { statPrefix } of this.#listeners.values()) {
      sum += store.valueOf(scopes[statPrefix]!, ListenerStats.at.downstream_cx_active);
      sum -= ofParent(`${statPrefix}downstream_cx_active`);
    }
    return Math.max(sum, 0);
  }

  /** Closes the primary's copies of all sockets. */
  close(): void {
    for (const listener of this.#listeners.values()) listener.close();
  }
}
