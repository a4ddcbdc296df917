// Validates header names in a configuration. Names that no message can have would never match, so they are refused.

import { BatonError } from '../../common/errors/errors.js';
import { isFieldName } from '../../common/text/header-names.js';

/** @throws BatonError CONFIG_INVALID; `where` is the name's path in the configuration */
export function checkFieldName(name: string, where: string): void {
  if (isFieldName(name)) return;
  const remedy = "a name has letters, digits and !#$%&'*+-.^_`|~";
  throw new BatonError('CONFIG_INVALID', `'${name}' is not a valid header name`, { where, remedy });
}

/**
 * Validates the name of a header that is to be removed.
 * @throws BatonError CONFIG_INVALID; `where` is the name's path in the configuration
 */
export function checkRemovable(name: string, where: string): void {
  if (name.startsWith(':') || name.toLowerCase() === 'host') {
    throw new BatonError('CONFIG_INVALID', `'${name}' cannot be removed: every request needs it`, { where });
  }
  checkFieldName(name, where);
}
