// The condition of a sink's peer: each change is one line in the log, however often things fail in between.

import { getLogger } from '../sdk.js';

const logger = getLogger('stats');

export class Condition {
  readonly #peer: string;
  #reason = '';
  #lost = 0;
  #hasSent = false;
  #hasFailed = false;

  /** `peer` as the log calls it: `statsd sink 127.0.0.1:8125`. */
  constructor(peer: string) {
    this.#peer = peer;
  }

  /** A flush begins. A peer works again when it has taken the whole of the one before. */
  begin(): void {
    const works = this.#hasSent && !this.#hasFailed;
    this.#hasSent = this.#hasFailed = false;
    if (!works || this.#reason === '') return;
    logger.info(`${this.#peer} takes stats again; ${this.#lost} message(s) were lost`);
    this.#reason = '';
    this.#lost = 0;
  }

  /** Something was sent. */
  sent(): void {
    this.#hasSent = true;
  }

  /** `lost` messages were not sent, because of `reason`. */
  fails(reason: string, lost = 1): void {
    this.#lost += lost;
    this.#hasFailed = true;
    if (this.#reason === reason) return;
    if (this.#reason === '') logger.warning(`${this.#peer} takes no stats: ${reason}; what is not taken is lost`);
    this.#reason = reason;
  }
}
