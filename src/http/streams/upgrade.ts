// Decides whether a request may upgrade.

import { knownHeader } from '../../common/text/header-names.js';
import type { HeaderBlock } from '../headers/header-block.js';
import type { Route } from '../routing/actions/route.js';

const UPGRADE = knownHeader('upgrade');

/**
 * Returns whether the upgrade of a request is allowed. `allowed`: upgrade types (lower case) of the connection manager, which apply if the
 * route does not decide.
 */
export function allowsUpgrade(
  headers: HeaderBlock,
  route: Route<unknown> | undefined,
  allowed: ReadonlySet<string>,
): boolean {
  const index = headers.findId(UPGRADE);
  // With several types the host might switch to one that was not checked.
  const isOne = index >= 0 && headers.findId(UPGRADE, index + 1) < 0;
  const type = isOne ? headers.value(index).toLowerCase() : '';
  return route?.allowsUpgrade(type) ?? allowed.has(type);
}
