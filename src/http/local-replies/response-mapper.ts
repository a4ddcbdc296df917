// A mapper of local_reply_config: a filter that selects local replies, and the changes to them.

import { BatonError, buildAll } from '../../common/errors/errors.js';
import { readDataSource } from '../../config/fields/data-source.js';
import type { DataSource, ResponseMapper as ResponseMapperConfig } from '../../config/generated/api.js';
import { compileHeaderMutations, type HeaderMutations } from '../headers/header-mutations.js';
import { compileLogFilter } from '../log-filters/compile-log-filter.js';
import type { LogFilter, LogFilterContext } from '../log-filters/log-filter.js';
import { MAX_BODY_BYTES, ReplyFormat } from './reply-format.js';

/** Undefined parts are not changed. */
export interface ResponseMapper {
  readonly filter: LogFilter;
  readonly status: number | undefined;
  readonly body: Uint8Array | undefined;
  readonly headers: HeaderMutations | undefined;
  readonly format: ReplyFormat | undefined;
}

/** @throws BatonError for an invalid mapper, Mistakes for several errors; `where` is its path in the configuration. */
export function compileMapper(config: ResponseMapperConfig, where: string, context: LogFilterContext): ResponseMapper {
  const { body, body_format_override: format, headers_to_add: toAdd } = config;
  return buildAll<ResponseMapper>({
    filter: () => compileLogFilter(config.filter!, `${where}.filter`, context),
    status: () => config.status_code,
    body: () => body && bodyOf(body, `${where}.body`),
    format: () => format && ReplyFormat.of(format, `${where}.body_format_override`),
    headers: () => {
      const place = (_list: string, index: number) => `${where}.headers_to_add[${index}]`;
      return compileHeaderMutations([{ toRemove: undefined, toAdd, where: place }]);
    },
  });
}

function bodyOf(source: DataSource, where: string): Uint8Array {
  const body = readDataSource(source, where);
  if (body.length <= MAX_BODY_BYTES) return body;
  const message = `the body has ${body.length} bytes, and at most ${MAX_BODY_BYTES} are allowed`;
  throw new BatonError('CONFIG_INVALID', message, { where, remedy: 'redirect to a host that has it' });
}
