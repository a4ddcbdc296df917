// upgrade_configs of a connection manager or a route: the upgrade types that they allow.

import { BatonError } from '../../../common/errors/errors.js';

/** The upgrade type that stands for the method CONNECT. */
export const CONNECT = 'connect';

/** The common fields of both UpgradeConfig messages. */
interface UpgradeConfig {
  readonly upgrade_type?: string;
  readonly enabled?: boolean;
}

/**
 * Returns the named types in lower case, and whether each is allowed.
 * @throws BatonError CONFIG_INVALID; `where` is the path of the list in the configuration
 */
export function upgradeTypes(configs: readonly UpgradeConfig[] | undefined, where: string): Map<string, boolean> {
  const types = new Map<string, boolean>();
  configs?.forEach(({ upgrade_type: name = '', enabled: isAllowed = true }, index) => {
    const type = name.toLowerCase();
    const at = { where: `${where}[${index}].upgrade_type` };
    if (types.has(type)) throw new BatonError('CONFIG_INVALID', `the upgrade '${type}' occurs twice`, at);
    if (type === '') throw new BatonError('CONFIG_INVALID', 'an upgrade needs a type, such as websocket', at);
    if (type === 'h2c' && isAllowed) {
      const message = `'${name}' cannot be allowed: such requests are answered in HTTP/1.1`;
      throw new BatonError('CONFIG_INVALID', message, { ...at, remedy: 'leave it out' });
    }
    types.set(type, isAllowed);
  });
  return types;
}
