// Says in the log that stats have lost samples or names because a thread's memory for them was full.

import { getLogger } from '../../log/logger.js';

const logger = getLogger('stats');

export class LostSamples {
  #said = 0;

  /** `lost`: since the process began. Said when it is the first, and when there are twice as many as was said last. */
  look(lost: number): void {
    if (lost === 0 || lost < this.#said * 2) return;
    this.#said = lost;
    logger.warning(
      `${lost} samples of histograms or names of stats were lost: more came between two flushes than there was room for ` +
        '(a shorter stats_flush_interval makes room more often)',
    );
  }
}
