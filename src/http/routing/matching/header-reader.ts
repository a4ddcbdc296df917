// Finds the header that a configuration names in a request, for what needs its value as text; pseudo-headers included.

import { BatonError } from '../../../common/errors/errors.js';
import { headerKey } from '../../../common/text/header-names.js';
import { checkFieldName } from '../../headers/field-name.js';
import type { HeaderBlock } from '../../headers/header-block.js';

export type HeaderReader = (headers: HeaderBlock) => string | undefined;

/**
 * Reads the header of that name; undefined where a request lacks it.
 * @throws BatonError CONFIG_INVALID for what is no name, or a pseudo-header that is not there yet; `where` is the name's path in the configuration
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
