// The filters of access_log lists: what is wrong with them, and the loggers behind them.

import type { AccessLogger } from '../access-log/access-logger.js';
import type { Report } from '../config/catalog/extension.js';
import type { AccessLog } from '../config/generated/api.js';
import { CHECKING, compileLogFilter } from '../http/log-filters/compile-log-filter.js';
import { FilteredLogger } from '../http/log-filters/filtered-logger.js';
import type { LogFilterContext } from '../http/log-filters/log-filter.js';
import { reportMistakes } from './report-mistakes.js';

/** Reports what is wrong with the filters of `logs`, the list that stands at `path`. */
export function reportLogFilters(logs: readonly AccessLog[] | undefined, path: string, report: Report): void {
  for (const [index, { filter }] of (logs ?? []).entries()) {
    if (filter === undefined) continue;
    reportMistakes(report, `${path}[${index}]`, () => compileLogFilter(filter, 'filter', CHECKING));
  }
}

/**
 * The logger that `create` makes, behind the filter of its element of an access_log list, if it has one. Throws what `create` throws,
 * and a BatonError, before it is called, when the filter is wrong.
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
