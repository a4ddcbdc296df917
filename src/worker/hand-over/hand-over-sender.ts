// Hands one worker's connections over to the child process: decides when each can move, and handles the outcome.

import { shownName } from '../../common/text/shown.js';
import type { FrozenConnection, NativeShim } from '../../io/shim.js';
import type { Transport } from '../../io/transport/transport.js';
import type { HandOverQueue, MovableConnection, PreparedHandOver } from '../../listener/hand-over.js';
import { forEachGuarded, internalError } from '../../log/internal-errors.js';
import { getLogger } from '../../log/logger.js';
import { SendingChannel } from '../../restart/hand-over/sending-channel.js';
import { HandOverStats } from '../../stats/layouts/hand-over.js';
import type { Scope } from '../../stats/thread-stats.js';

/** Timeout of the child's answer for a connection, which is frozen meanwhile. */
const ANSWER_MS = 5000;

const HAND_OVER_FAILED = 'internal error: a connection cannot be handed over';

const logger = getLogger('main');

export class HandOverSender implements HandOverQueue {
  readonly #shim: NativeShim;
  readonly #transport: Transport;
  readonly #stats: Scope;
  readonly #onEnd: () => void;
  readonly #channels: readonly SendingChannel[];
  /** Connections that stopped in this turn and are offered at its end. */
  #ready: MovableConnection[] = [];
  readonly #waiting = new Set<MovableConnection>();
  /** Reasons that were logged. */
  readonly #logged = new Set<string>();
  #room = 0;
  #next = 0;

  /**
   * Owns the channels `fds`, with at most `descriptors` in flight each. `onEnd` is called when no more connections can move;
   * the remaining ones drain.
   */
  constructor(
    shim: NativeShim,
    transport: Transport,
    stats: Scope,
    fds: readonly number[],
    descriptors: number,
    onEnd: () => void,
  ) {
    this.#onEnd = onEnd;
    this.#shim = shim;
    this.#transport = transport;
    this.#stats = stats;
    const onRoom = () => {
      this.#transport.beginTurn();
      this.#dispatch();
    };
    const limits = { descriptors, answerMs: ANSWER_MS };
    this.#channels = fds.map((fd) => new SendingChannel(shim, fd, limits, onRoom));
    transport.onTurnEnd = () => {
      if (this.#ready.length > 0 || (this.#waiting.size > 0 && this.#room > 0)) this.#dispatch();
    };
    this.#countRoom();
  }

  get hasRoom(): boolean {
    return this.#room > this.#ready.length;
  }

  ready(connection: MovableConnection): void {
    this.#ready.push(connection);
  }

  add(connection: MovableConnection): void {
    if (!connection.hasHandOverFailed) this.#waiting.add(connection);
  }

  /** Offers the connections that can move now, as far as the channels have room. */
  start(): void {
    this.#dispatch();
  }

  /** Called when the thread ends. */
  close(): void {
    this.#transport.onTurnEnd = undefined;
    this.#waiting.clear();
    for (const channel of this.#channels) channel.close();
  }

  #dispatch(): void {
    try {
      const ready = this.#ready;
      this.#ready = [];
      forEachGuarded(ready, HAND_OVER_FAILED, (connection) => this.#handOver(connection));
      if (this.#channels.every(({ hasEnded }) => hasEnded)) this.#finish();
      for (const connection of this.#waiting) {
        if (this.#pick() === undefined) break;
        this.#waiting.delete(connection);
        this.#handOver(connection);
      }
      this.#countRoom();
    } catch (error) {
      internalError(HAND_OVER_FAILED, error);
    }
  }

  /** Called when all channels have ended. */
  #finish(): void {
    this.#transport.onTurnEnd = undefined;
    this.#waiting.clear();
    this.#onEnd();
  }

  #handOver(connection: MovableConnection): void {
    const prepared = connection.isClosed ? undefined : connection.handler?.prepareHandOver?.();
    if (prepared === undefined) return;
    const channel = this.#pick();
    if (channel === undefined) {
      this.#transport.beginTurn();
      return prepared.resume();
    }
    const sockets: FrozenConnection[] = [];
    let fingerprint: string;
    try {
      fingerprint = connection.chain.fingerprint();
      for (const id of prepared.ids) sockets.push(this.#transport.copyFrozen(id));
    } catch (error) {
      for (const { fd } of sockets) this.#shim.closeDescriptor(fd);
      return this.#keep(connection, prepared, String(error));
    }
    const { detected, direct, isLocalRestored, listener, localText: local, remote, startMonotonicMs } = connection;
    const { progress, input } = prepared;
    const ends = { remote, direct, local, isLocalRestored };
    const facts = { listener: listener.name, fingerprint, ...ends, detected, startMonotonicMs, progress };
    channel.offer(
      { facts, sockets, input },
      {
        moved: () => {
          this.#stats.increment(HandOverStats.at.connections_sent);
          prepared.release();
        },
        kept: (why) => this.#keep(connection, prepared, why),
      },
    );
  }

  #keep(connection: MovableConnection, prepared: PreparedHandOver, why: string): void {
    // Until the next child process: see ActiveListener.handOver().
    connection.hasHandOverFailed = true;
    this.#stats.increment(HandOverStats.at.connections_kept);
    if (!this.#logged.has(why)) {
      this.#logged.add(why);
      logger.warning(`connections of listener '${shownName(connection.listener.name)}' stay in this process: ${why}`);
    }
    this.#transport.beginTurn();
    prepared.resume();
  }

  /** Returns the next channel with room. */
  #pick(): SendingChannel | undefined {
    for (let tries = 0; tries < this.#channels.length; tries++) {
      const channel = this.#channels[this.#next++ % this.#channels.length]!;
      if (channel.room > 0) return channel;
    }
    return undefined;
  }

  #countRoom(): void {
    this.#room = this.#channels.reduce((sum, { room }) => sum + room, 0);
  }
}
