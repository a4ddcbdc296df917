// Reads a configured request header, or pseudo-header, as text.

import { BatonError } from '../../../common/errors/errors.js';
import { headerKey } from '../../../common/text/header-names.js';
import { checkFieldName } from '../../headers/field-name.js';
import type { HeaderBlock } from '../../headers/header-block.js';

export type HeaderReader = (headers: HeaderBlock) => string | undefined;

/**
 * Returns a reader of the header `name`, which returns undefined if a request lacks it.
 * @throws BatonError CONFIG_INVALID for an invalid name or an unsupported pseudo-header; `where` is the name's path in the configuration
 */
export function headerReader(name: string, where: string): HeaderReader {
  const lower = name.toLowerCase();
  if (lower === ':path') return (headers) => headers.pathText();
  if (lower === ':method') return (headers) => headers.methodText();
  if (lower.startsWith(':') && lower !== ':authority') {
    const remedy = "name a header, or ':authority', ':path' or ':method'";
    throw new BatonError('CONFIG_INVALID', `requests have no '${name}' here`, { where, remedy });
  }
  const field = lower === ':authority' ? 'host' : lower;
  checkFieldName(field, where);
  const key = headerKey(field);
  return (headers) => headers.get(key);
}
