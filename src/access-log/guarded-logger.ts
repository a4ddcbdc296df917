// Wraps an access logger and reports its exceptions, so that they affect neither other loggers nor the end of the stream.

import type { AccessLogger } from './access-logger.js';
import type { HeaderNeeds } from './operators/operator.js';
import type { StreamInfo } from './stream/stream-info.js';

export class GuardedLogger implements AccessLogger {
  readonly needs: HeaderNeeds;
  readonly #logger: AccessLogger;
  readonly #report: (error: unknown) => void;

  /** `report` gets what `logger` throws. */
  constructor(logger: AccessLogger, report: (error: unknown) => void) {
    this.needs = logger.needs;
    this.#logger = logger;
    this.#report = report;
  }

  log(info: StreamInfo): void {
    try {
      this.#logger.log(info);
    } catch (error) {
      this.#report(error);
    }
  }

  close(): void {
    try {
      this.#logger.close();
    } catch (error) {
      this.#report(error);
    }
  }
}
