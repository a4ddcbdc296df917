// The condition of a sink's peer. Each change is logged once, however many sends fail in between.

import { getLogger } from '../sdk.js';

const logger = getLogger('stats');

export class Condition {
  readonly #peer: string;
  #reason = '';
  #lost = 0;
  #hasSent = false;
  #hasFailed = false;

  /** `peer`: its name in the log, for example `statsd 127.0.0.1:8125`. */
  constructor(peer: string) {
    this.#peer = peer;
  }

  /** Called when a flush begins. A failed peer has recovered when it accepted the whole previous flush. */
  begin(): void {
    const works = this.#hasSent && !this.#hasFailed;
    this.#hasSent = this.#hasFailed = false;
    if (!works || this.#reason === '') return;
    logger.info(`${this.#peer} accepts stats again; ${this.#lost} message(s) were lost`);
    this.#reason = '';
    this.#lost = 0;
  }

  /** Called when a message was sent. */
  sent(): void {
    this.#hasSent = true;
  }

  /** Called when `lost` messages were not sent. */
  fails(reason: string, lost = 1): void {
    this.#lost += lost;
    this.#hasFailed = true;
    if (this.#reason === reason) return;
    if (this.#reason === '') logger.warning(`${this.#peer} accepts no stats: ${reason}; unsent stats are lost`);
    this.#reason = reason;
  }
}
