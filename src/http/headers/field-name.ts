// Names of header fields in a configuration: those that no message can have would never be found, and are refused.

import { BatonError } from '../../common/errors/errors.js';
import { isFieldName } from '../../common/text/header-names.js';

/** @throws BatonError CONFIG_INVALID; `where` is the name's path in the configuration */
export function checkFieldName(name: string, where: string): void {
  if (isFieldName(name)) return;
  const remedy = "a name has letters, digits and !#$%&'*+-.^_`|~";
  throw new BatonError('CONFIG_INVALID', `'${name}' is no name of a header`, { where, remedy });
}

/** The same for a field that is to be taken out of messages. */
export function checkRemovable(name: string, where: string): void {
  if (name.startsWith(':') || name.toLowerCase() === 'host') {
    throw new BatonError('CONFIG_INVALID', `'${name}' cannot be removed: every request needs it`, { where });
  }
  checkFieldName(name, where);
}
