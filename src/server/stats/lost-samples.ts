// Logs that stats have lost samples or names because a thread's memory for them was full.

import { getLogger } from '../../log/logger.js';

const logger = getLogger('stats');

export class LostSamples {
  #reported = 0;

  /**
   * `lost`: count since the process started. Logs the first loss, and each time the count has doubled since the last log line.
   */
  report(lost: number): void {
    if (lost === 0 || lost < this.#reported * 2) return;
    this.#reported = lost;
    logger.warning(
      `${lost} histogram samples or stat names were lost: more arrived between two flushes than fit into memory ` +
        '(a shorter stats_flush_interval frees memory more often)',
    );
  }
}
