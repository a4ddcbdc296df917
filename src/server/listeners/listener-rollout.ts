// How versions of listeners, and their filter chains, come into use at the workers, and how they go.

import type { Listener } from '../../config/generated/api.js';
import { addressText } from '../../io/address.js';
import type { DrainWindow } from '../../listener/drain-window.js';
import { getLogger } from '../../log/logger.js';
import type { ListenerSnapshot, ToWorker } from '../../worker/messages.js';
import type { SnapshotParts } from '../workers/snapshots.js';
import type { FormerListeners } from './former-listeners.js';
import type { ListenerBlocks } from './listener-blocks.js';
import { discardUpdate, type ListenerUpdate } from './listener-update.js';
import type { PrimaryListener } from './primary-listener.js';

export interface ListenerRolloutHost {
  /** The time in which a listener drains; undefined when it does not. */
  drainOf(listener: Listener): DrainWindow | undefined;
  publish(parts: SnapshotParts): void;
  /** Calls back when the workers have what was published. */
  whenApplied(callback: () => void): void;
  /** Resolves when all workers use what was published last; rejects when one cannot. */
  outcome(): Promise<void>;
  broadcast(message: ToWorker): void;
  /** No worker accepts for these any more; with `acceptRest` what waits at their sockets is accepted first. Closes the sockets. */
  stop(listeners: readonly PrimaryListener[], acceptRest: boolean): Promise<void>;
}

const logger = getLogger('main');

export class ListenerRollout {
  readonly #host: ListenerRolloutHost;
  readonly #blocks: ListenerBlocks;
  readonly #formers: FormerListeners;

  constructor(host: ListenerRolloutHost, blocks: ListenerBlocks, formers: FormerListeners) {
    this.#host = host;
    this.#blocks = blocks;
    this.#formers = formers;
  }

  /**
   * Workers build a version beside what they have, or give new connections to other chains. Resolves when all of them do; rejects
   * when one cannot.
   */
  build(update: ListenerUpdate): Promise<void> {
    update.isPublished = true;
    this.publish(update.listener, update.chains);
    return this.#host.outcome();
  }

  /** Workers are told of the version, with `chains` for new connections. */
  publish(listener: PrimaryListener, chains = listener.chains): void {
    const snapshot = listener.snapshot(this.#host.drainOf(listener.config), chains);
    this.#host.publish({ scopes: listener.scopesWith(chains), listeners: [snapshot] });
  }

  /** For a worker that begins: what is in use, and what others are just being told. */
  *snapshots(active: PrimaryListener | undefined, warming: ListenerUpdate | undefined): Generator<ListenerSnapshot> {
    const update = warming?.isPublished ? warming : undefined;
    if (active !== undefined) {
      yield active.snapshot(this.#host.drainOf(active.config), update?.chains ?? active.chains);
    }
    if (update !== undefined && update.chains === undefined) {
      const { listener } = update;
      yield listener.snapshot(this.#host.drainOf(listener.config), listener.chains);
    }
  }

  /** Workers accept on its sockets. Throws ListenError. */
  accept(listener: PrimaryListener): void {
    listener.startListening();
    if (!listener.hasSockets) return;
    logger.info(`listener '${listener.name}' listens on ${addressText(listener.address)}`);
    this.#host.broadcast({ kind: 'accept', id: listener.id });
  }

  /** A version is not used any more: it stops to accept, and drains. `goesOn`: others accept at its sockets, and at what waits. */
  leave(listener: PrimaryListener, goesOn: boolean): void {
    if (!listener.isStopped) {
      listener.stop();
      void this.#host.stop([listener], !goesOn);
    }
    this.#formers.addListener(listener);
  }

  /** A version that nobody was connected to: workers that have it forget it. */
  forget(listener: PrimaryListener): void {
    listener.stop();
    this.#host.publish({ removedListeners: [listener.id], removedScopes: listener.retire() });
    this.#host.whenApplied(() => this.free(listener));
  }

  /** No worker has it any more. */
  free(listener: PrimaryListener): void {
    listener.free();
    this.#blocks.free(listener.name);
  }

  /** An update that is not in use is dropped, because of `why`. */
  drop(update: ListenerUpdate, why: unknown): void {
    const { chains, isPublished, listener, newChains } = update;
    if (!isPublished) discardUpdate(update, this.#blocks);
    else if (chains === undefined) this.forget(listener);
    else {
      // Workers that could build the new chains have given connections to them.
      this.publish(listener);
      this.#formers.addChains(listener, newChains);
    }
    update.settle(why);
  }
}
