// One worker's connections on their way to the child process: which of them can leave when, and what becomes of them.

import { shownName } from '../../common/text/shown.js';
import type { FrozenConnection, NativeShim } from '../../io/shim.js';
import type { Transport } from '../../io/transport/transport.js';
import type { Departure, Departures, TravellingConnection } from '../../listener/travel.js';
import { forEachGuarded, internalError } from '../../log/internal-errors.js';
import { getLogger } from '../../log/logger.js';
import { DepartureChannel } from '../../restart/travel/departure-channel.js';
import { HandOverStats } from '../../stats/layouts/hand-over.js';
import type { Scope } from '../../stats/thread-stats.js';

/** How long the child may take to answer for a connection, which rests meanwhile. */
const ANSWER_MS = 5000;

const LEAVING = 'internal error: a connection cannot be handed over';

const logger = getLogger('main');

export class WorkerDepartures implements Departures {
  readonly #shim: NativeShim;
  readonly #transport: Transport;
  readonly #stats: Scope;
  readonly #onOver: () => void;
  readonly #channels: readonly DepartureChannel[];
  /** Stopped in this turn, to leave at its end. */
  #ready: TravellingConnection[] = [];
  readonly #waiting = new Set<TravellingConnection>();
  /** Reasons that were logged. */
  readonly #told = new Set<string>();
  #room = 0;
  #next = 0;

  /**
   * Takes over the channels `fds`, on which this many descriptors each may be under way. `onOver`: no more connections can
   * leave, and those that are still here drain.
   */
  constructor(
    shim: NativeShim,
    transport: Transport,
    stats: Scope,
    fds: readonly number[],
    descriptors: number,
    onOver: () => void,
  ) {
    this.#onOver = onOver;
    this.#shim = shim;
    this.#transport = transport;
    this.#stats = stats;
    const onRoom = () => {
      this.#transport.beginTurn();
      this.#dispatch();
    };
    const limits = { descriptors, answerMs: ANSWER_MS };
    this.#channels = fds.map((fd) => new DepartureChannel(shim, fd, limits, onRoom));
    transport.onTurnEnd = () => {
      if (this.#ready.length > 0 || (this.#waiting.size > 0 && this.#room > 0)) this.#dispatch();
    };
    this.#countRoom();
  }

  get hasRoom(): boolean {
    return this.#room > this.#ready.length;
  }

  ready(connection: TravellingConnection): void {
    this.#ready.push(connection);
  }

  add(connection: TravellingConnection): void {
    if (!connection.mustStay) this.#waiting.add(connection);
  }

  /** All that can leave now, does, as far as there is room. */
  start(): void {
    this.#dispatch();
  }

  /** The thread ends. */
  close(): void {
    this.#transport.onTurnEnd = undefined;
    this.#waiting.clear();
    for (const channel of this.#channels) channel.close();
  }

  #dispatch(): void {
    try {
      const ready = this.#ready;
      this.#ready = [];
      forEachGuarded(ready, LEAVING, (connection) => this.#depart(connection));
      if (this.#channels.every(({ isOver }) => isOver)) this.#over();
      for (const connection of this.#waiting) {
        if (this.#pick() === undefined) break;
        this.#waiting.delete(connection);
        this.#depart(connection);
      }
      this.#countRoom();
    } catch (error) {
      internalError(LEAVING, error);
    }
  }

  /** There is nobody to go to. */
  #over(): void {
    this.#transport.onTurnEnd = undefined;
    this.#waiting.clear();
    this.#onOver();
  }

  #depart(connection: TravellingConnection): void {
    const departure = connection.isClosed ? undefined : connection.handler?.depart?.();
    if (departure === undefined) return;
    const channel = this.#pick();
    if (channel === undefined) {
      this.#transport.beginTurn();
      return departure.stay();
    }
    const sockets: FrozenConnection[] = [];
    let fingerprint: string;
    try {
      fingerprint = connection.chain.fingerprint();
      for (const id of departure.ids) sockets.push(this.#transport.copyFrozen(id));
    } catch (error) {
      for (const { fd } of sockets) this.#shim.closeDescriptor(fd);
      return this.#stay(connection, departure, String(error));
    }
    const { direct, listener, localText: local, remote, startMonotonicMs } = connection;
    const { progress, input } = departure;
    const facts = { listener: listener.name, fingerprint, remote, direct, local, startMonotonicMs, progress };
    channel.offer(
      { facts, sockets, input },
      {
        left: () => {
          this.#stats.increment(HandOverStats.at.connections_sent);
          departure.leave();
        },
        stays: (why) => this.#stay(connection, departure, why),
      },
    );
  }

  #stay(connection: TravellingConnection, departure: Departure, why: string): void {
    // Until there is another child process: see ActiveListener.depart().
    connection.mustStay = true;
    this.#stats.increment(HandOverStats.at.connections_kept);
    if (!this.#told.has(why)) {
      this.#told.add(why);
      logger.warning(`connections of listener '${shownName(connection.listener.name)}' stay in this process: ${why}`);
    }
    this.#transport.beginTurn();
    departure.stay();
  }

  /** The next channel that has room. */
  #pick(): DepartureChannel | undefined {
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
