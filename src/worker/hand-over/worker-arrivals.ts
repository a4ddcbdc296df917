// Receives connections of the parent process on one worker.

import { messageOf } from '../../common/errors/errors.js';
import type { NativeShim } from '../../io/shim.js';
import type { Transport } from '../../io/transport/transport.js';
import type { Arrival, Cargo } from '../../listener/travel.js';
import { internalError } from '../../log/internal-errors.js';
import { getLogger } from '../../log/logger.js';
import { ArrivalChannel } from '../../restart/travel/arrival-channel.js';
import { HandOverStats } from '../../stats/layouts/hand-over.js';
import type { Scope } from '../../stats/thread-stats.js';

const logger = getLogger('main');

/** The listeners that take over connections. */
export interface ArrivalListeners {
  /** Returns the arrival of a connection from another process, or the reason why it cannot continue here. */
  expect(cargo: Cargo): Arrival | string;
}

export class WorkerArrivals {
  readonly #listeners: ArrivalListeners;
  readonly #stats: Scope;
  readonly #transport: Transport;
  readonly #channels: readonly ArrivalChannel[];

  /** Owns the channels `fds`. */
  constructor(
    shim: NativeShim,
    transport: Transport,
    listeners: ArrivalListeners,
    stats: Scope,
    fds: readonly number[],
  ) {
    this.#listeners = listeners;
    this.#stats = stats;
    this.#transport = transport;
    const host = {
      expect: (cargo: Cargo) => this.#expect(cargo),
      ended: (why: string) => {
        if (why !== '') logger.warning(`no more connections are taken over from the parent process: ${why}`);
      },
    };
    this.#channels = fds.flatMap((fd) => {
      try {
        return new ArrivalChannel(shim, fd, host);
      } catch (error) {
        shim.closeDescriptor(fd);
        host.ended(messageOf(error));
        return [];
      }
    });
  }

  /** Called when the thread ends. */
  close(): void {
    for (const channel of this.#channels) channel.close();
  }

  #expect(cargo: Cargo): Arrival | string {
    try {
      this.#transport.beginTurn();
      const expected = this.#listeners.expect(cargo);
      if (typeof expected !== 'string') return this.#counted(expected);
      this.#stats.increment(HandOverStats.at.connections_refused);
      return expected;
    } catch (error) {
      internalError('internal error: a connection cannot be taken over', error);
      return 'an internal error';
    }
  }

  #counted(arrival: Arrival): Arrival {
    return {
      drop: () => arrival.drop(),
      begin: () => {
        this.#transport.beginTurn();
        try {
          arrival.begin();
          this.#stats.increment(HandOverStats.at.connections_received);
        } catch (error) {
          internalError('internal error: a connection that was taken over is lost', error);
        }
      },
    };
  }
}
