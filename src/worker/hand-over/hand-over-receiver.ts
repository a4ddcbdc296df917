// Receives connections of the parent process on one worker.

import { messageOf } from '../../common/errors/errors.js';
import type { NativeShim } from '../../io/shim.js';
import type { Transport } from '../../io/transport/transport.js';
import type { HandedOverConnection, PreparedTakeOver } from '../../listener/hand-over.js';
import { internalError } from '../../log/internal-errors.js';
import { getLogger } from '../../log/logger.js';
import { ReceivingChannel } from '../../restart/hand-over/receiving-channel.js';
import { HandOverStats } from '../../stats/layouts/hand-over.js';
import type { Scope } from '../../stats/thread-stats.js';

const logger = getLogger('main');

/** The listeners that take over connections. */
export interface ReceivingListeners {
  /** Prepares to take over a connection from another process. Returns a string with the reason if that is not possible. */
  prepareTakeOver(handedOver: HandedOverConnection): PreparedTakeOver | string;
}

export class HandOverReceiver {
  readonly #listeners: ReceivingListeners;
  readonly #stats: Scope;
  readonly #transport: Transport;
  readonly #channels: readonly ReceivingChannel[];

  /** Owns the channels `fds`. */
  constructor(
    shim: NativeShim,
    transport: Transport,
    listeners: ReceivingListeners,
    stats: Scope,
    fds: readonly number[],
  ) {
    this.#listeners = listeners;
    this.#stats = stats;
    this.#transport = transport;
    const host = {
      prepareTakeOver: (handedOver: HandedOverConnection) => this.#prepareTakeOver(handedOver),
      ended: (why: string) => {
        if (why !== '') logger.warning(`no more connections are taken over from the parent process: ${why}`);
      },
    };
    this.#channels = fds.flatMap((fd) => {
      try {
        return new ReceivingChannel(shim, fd, host);
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

  #prepareTakeOver(handedOver: HandedOverConnection): PreparedTakeOver | string {
    try {
      this.#transport.beginTurn();
      const prepared = this.#listeners.prepareTakeOver(handedOver);
      if (typeof prepared !== 'string') return this.#counted(prepared);
      this.#stats.increment(HandOverStats.at.connections_refused);
      return prepared;
    } catch (error) {
      internalError('internal error: a connection cannot be taken over', error);
      return 'an internal error';
    }
  }

  #counted(prepared: PreparedTakeOver): PreparedTakeOver {
    return {
      drop: () => prepared.drop(),
      begin: () => {
        this.#transport.beginTurn();
        try {
          prepared.begin();
          this.#stats.increment(HandOverStats.at.connections_received);
        } catch (error) {
          internalError('internal error: a connection that was taken over is lost', error);
        }
      },
    };
  }
}
