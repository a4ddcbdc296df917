// Handles failures to accept connections on a worker: requests room when descriptors are short, and logs at most one line per
// minute and reason, for all listeners together.

import { constants } from 'node:os';
import { errorName } from '../common/errors/errno.js';
import { shownName } from '../common/text/shown.js';
import type { Clock } from '../io/time/clock.js';
import type { Logger } from '../log/logger.js';

const QUIET_MS = 60_000;

export class AcceptFailures {
  readonly #logger: Logger;
  readonly #clock: Clock;
  readonly #makeRoom: () => void;
  readonly #loggedMs = new Map<number, number>();

  /** `makeRoom` is called when descriptors are short. */
  constructor(logger: Logger, clock: Clock, makeRoom: () => void) {
    this.#logger = logger;
    this.#clock = clock;
    this.#makeRoom = makeRoom;
  }

  report(listener: string, errno: number): void {
    this.#log(listener, errno);
    if (errno === constants.errno.EMFILE) this.#makeRoom();
  }

  #log(listener: string, errno: number): void {
    const nowMs = this.#clock.monotonicMs;
    if (nowMs - (this.#loggedMs.get(errno) ?? Number.NEGATIVE_INFINITY) < QUIET_MS) return;
    this.#loggedMs.set(errno, nowMs);
    this.#logger.warning(
      errno === constants.errno.EMFILE
        ? `listener '${shownName(listener)}': no more connections are accepted until some end, because this process cannot open more files; idle connections to hosts are closed meanwhile; raise the limit (ulimit -n, LimitNOFILE=)`
        : `listener '${shownName(listener)}': accept failed (${errorName(errno)}); accepting again as soon as it is possible`,
    );
  }
}
