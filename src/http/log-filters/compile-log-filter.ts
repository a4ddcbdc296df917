// envoy.config.accesslog.v3.AccessLogFilter, compiled.

import type { StreamInfo } from '../../access-log/stream/stream-info.js';
import { BatonError, buildEach } from '../../common/errors/errors.js';
import { Random } from '../../common/random.js';
import type { AccessLogFilter, AccessLogType, LogTypeFilter } from '../../config/generated/api.js';
import { unpack } from '../../config/schema/any.js';
import { Runtime } from '../../runtime/runtime.js';
import { ExpressionFilter } from './expression-filter.js';
import { GrpcStatusFilter } from './grpc-status-filter.js';
import { HeaderFilter } from './header-filter.js';
import { type LogFilter, type LogFilterContext, NO_NEEDS, needsOfAll } from './log-filter.js';
import { DurationFilter, StatusCodeFilter } from './number-filters.js';
import { ResponseFlagFilter } from './response-flag-filter.js';
import { SamplingFilter } from './sampling-filter.js';

const EXPRESSION = 'envoy.extensions.access_loggers.filters.cel.v3.ExpressionFilter';

/** Context for callers that only validate a filter. */
export const CHECKING: LogFilterContext = { runtime: new Runtime(), random: new Random(0), recordType: 'NotSet' };

/** @throws BatonError for an invalid filter, Mistakes for several errors; `where` is its path in the configuration. */
export function compileLogFilter(config: AccessLogFilter, where: string, context: LogFilterContext): LogFilter {
  const { status_code_filter: status, duration_filter: duration, and_filter: and, or_filter: or } = config;
  if (status !== undefined) return new StatusCodeFilter(status.comparison!, context.runtime);
  if (duration !== undefined) return new DurationFilter(duration.comparison!, context.runtime);
  if (config.not_health_check_filter !== undefined) return NOT_HEALTH_CHECK;
  if (config.traceable_filter !== undefined) return TRACEABLE;
  if (config.runtime_filter !== undefined) return new SamplingFilter(config.runtime_filter, context);
  if (and !== undefined) return new Combination(compileEach(and.filters!, `${where}.and_filter`, context), true);
  if (or !== undefined) return new Combination(compileEach(or.filters!, `${where}.or_filter`, context), false);
  if (config.header_filter !== undefined) {
    return new HeaderFilter(config.header_filter.header!, `${where}.header_filter.header`);
  }
  if (config.response_flag_filter !== undefined) return new ResponseFlagFilter(config.response_flag_filter);
  if (config.grpc_status_filter !== undefined) return new GrpcStatusFilter(config.grpc_status_filter);
  if (config.log_type_filter !== undefined) return typeFilter(config.log_type_filter, context.recordType);
  const expression = unpack(config.extension_filter?.typed_config, EXPRESSION);
  if (expression !== undefined) return new ExpressionFilter(expression, `${where}.extension_filter.typed_config`);
  throw new BatonError('CONFIG_INVALID', 'an access log filter needs a condition', { where });
}

function compileEach(configs: readonly AccessLogFilter[], where: string, context: LogFilterContext): LogFilter[] {
  return buildEach(configs, (config, index) => compileLogFilter(config, `${where}.filters[${index}]`, context));
}

/** All records of one filter have one type, so the result is constant. */
function typeFilter({ types = [], exclude = false }: LogTypeFilter, type: AccessLogType): LogFilter {
  const isMatch = types.includes(type) !== exclude;
  return { needs: NO_NEEDS, matches: () => isMatch };
}

/** not_health_check_filter: the health check filter did not mark the request as a health check. */
const NOT_HEALTH_CHECK: LogFilter = { needs: NO_NEEDS, matches: (info) => !info.isHealthCheck };

/** traceable_filter: the request is traced. As in Envoy, health checks are not. */
const TRACEABLE: LogFilter = { needs: NO_NEEDS, matches: (info) => info.traceReason > 0 && !info.isHealthCheck };

/** and_filter and or_filter: evaluates filters in order, up to the first that decides. */
class Combination implements LogFilter {
  readonly needs;
  readonly #filters: readonly LogFilter[];
  readonly #isAnd: boolean;

  constructor(filters: readonly LogFilter[], isAnd: boolean) {
    this.needs = needsOfAll(filters);
    this.#filters = filters;
    this.#isAnd = isAnd;
  }

  matches(info: StreamInfo): boolean {
    for (let i = 0; i < this.#filters.length; i++) {
      if (this.#filters[i]!.matches(info) !== this.#isAnd) return !this.#isAnd;
    }
    return this.#isAnd;
  }
}
