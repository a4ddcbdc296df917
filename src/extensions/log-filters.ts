// Filters of access_log lists: reports their mistakes, and puts loggers behind them.

import type { AccessLogger } from '../access-log/access-logger.js';
import type { Report } from '../config/catalog/extension.js';
import type { AccessLog } from '../config/generated/api.js';
import { CHECKING, compileLogFilter } from '../http/log-filters/compile-log-filter.js';
import { FilteredLogger } from '../http/log-filters/filtered-logger.js';
import type { LogFilterContext } from '../http/log-filters/log-filter.js';
import { reportMistakes } from './report-mistakes.js';

/** Reports the mistakes in the filters of `logs`, an access_log list at `path`. */
export function reportLogFilters(logs: readonly AccessLog[] | undefined, path: string, report: Report): void {
  for (const [index, { filter }] of (logs ?? []).entries()) {
    if (filter === undefined) continue;
    reportMistakes(report, `${path}[${index}]`, () => compileLogFilter(filter, 'filter', CHECKING));
  }
}

/**
 * Returns the logger that `create` returns, behind the filter of its access_log element if there is one. Throws what `create`
 * throws, or before that a BatonError if the filter is invalid.
 */
export function createFiltered(
  { filter: config }: AccessLog,
  context: LogFilterContext,
  create: () => AccessLogger,
): AccessLogger {
  if (config === undefined) return create();
  const filter = compileLogFilter(config, 'filter', context);
  return new FilteredLogger(create(), filter);
}
