// Which other protocols a request may change to.

import { knownHeader } from '../../common/text/header-names.js';
import type { HeaderBlock } from '../headers/header-block.js';
import type { Route } from '../routing/actions/route.js';

const UPGRADE = knownHeader('upgrade');

/** `allowed`: upgrade types (lower case) of the connection manager, where the route has no say of its own. */
export function allowsUpgrade(
  headers: HeaderBlock,
  route: Route<unknown> | undefined,
  allowed: ReadonlySet<string>,
): boolean {
  const index = headers.findId(UPGRADE);
  // With a choice the host might switch to a protocol that was not looked at.
  const isOne = index >= 0 && headers.findId(UPGRADE, index + 1) < 0;
  const type = isOne ? headers.value(index).toLowerCase() : '';
  return route?.allowsUpgrade(type) ?? allowed.has(type);
}
