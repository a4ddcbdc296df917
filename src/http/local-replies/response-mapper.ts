// One of the mappers of local_reply_config: which answers it is for, and what becomes of them.

import { BatonError, buildAll } from '../../common/errors/errors.js';
import { readDataSource } from '../../config/fields/data-source.js';
import type { DataSource, ResponseMapper as ResponseMapperConfig } from '../../config/generated/api.js';
import { compileHeaderMutations, type HeaderMutations } from '../headers/header-mutations.js';
import { compileLogFilter } from '../log-filters/compile-log-filter.js';
import type { LogFilter, LogFilterContext } from '../log-filters/log-filter.js';
import { MOST_BODY_BYTES, ReplyFormat } from './reply-format.js';

/** What is undefined stays as it is. */
export interface ResponseMapper {
  readonly filter: LogFilter;
  readonly status: number | undefined;
  readonly body: Uint8Array | undefined;
  readonly headers: HeaderMutations | undefined;
  readonly format: ReplyFormat | undefined;
}

/** @throws BatonError for what is wrong with it, Mistakes for several; `where` is its path in the configuration. */
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
  if (body.length <= MOST_BODY_BYTES) return body;
  const message = `the body has ${body.length} bytes, and at most ${MOST_BODY_BYTES} are allowed`;
  throw new BatonError('CONFIG_INVALID', message, { where, remedy: 'redirect to a host that has it' });
}
