// An access logger with a filter: streams that do not match are not logged. Loggers without a filter are not wrapped.

import type { AccessLogger } from '../../access-log/access-logger.js';
import type { HeaderNeeds } from '../../access-log/operators/operator.js';
import type { StreamInfo } from '../../access-log/stream/stream-info.js';
import { type LogFilter, needsOfAll } from './log-filter.js';

export class FilteredLogger implements AccessLogger {
  readonly needs: HeaderNeeds;
  readonly #logger: AccessLogger;
  readonly #filter: LogFilter;

  constructor(logger: AccessLogger, filter: LogFilter) {
    this.needs = needsOfAll([logger, filter]);
    this.#logger = logger;
    this.#filter = filter;
  }

  log(info: StreamInfo): void {
    if (this.#filter.matches(info)) this.#logger.log(info);
  }

  close(): void {
    this.#logger.close();
  }
}
