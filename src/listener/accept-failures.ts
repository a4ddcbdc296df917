// What a worker's log says of connections that cannot be accepted: one line a minute for each reason, however many listeners there
// are and however often one of them goes on and fails again.

import { constants } from 'node:os';
import { errorName } from '../common/errors/errno.js';
import type { Clock } from '../io/time/clock.js';
import type { Logger } from '../log/logger.js';

const QUIET_MS = 60_000;

export class AcceptFailures {
  readonly #logger: Logger;
  readonly #clock: Clock;
  readonly #saidMs = new Map<number, number>();

  constructor(logger: Logger, clock: Clock) {
    this.#logger = logger;
    this.#clock = clock;
  }

  report(listener: string, errno: number): void {
    const nowMs = this.#clock.monotonicMs;
    if (nowMs - (this.#saidMs.get(errno) ?? Number.NEGATIVE_INFINITY) < QUIET_MS) return;
    this.#saidMs.set(errno, nowMs);
    this.#logger.warning(
      errno === constants.errno.EMFILE
        ? `listener '${listener}': no more connections are accepted until some end, because this process may open too few files; raise the limit (ulimit -n, LimitNOFILE=)`
        : `listener '${listener}': accept failed (${errorName(errno)}); accepting again as soon as it is possible`,
    );
  }
}
