// Requests for tunnels, which are upgrades and CONNECT: whether they are allowed, and which responses accept them.

import { knownHeader } from '../../common/text/header-names.js';
import { type HeaderBlock, Method } from '../headers/header-block.js';
import type { Route } from '../routing/actions/route.js';
import { CONNECT } from '../routing/actions/upgrade-types.js';

const UPGRADE = knownHeader('upgrade');
const SWITCHING_PROTOCOLS = 101;

/** Returns whether raw bytes pass in both directions if the request is accepted. */
export function asksForTunnel({ method, upgrade }: HeaderBlock): boolean {
  return upgrade || method === Method.Connect;
}

/** Returns whether a response with this status accepts a request that asks for a tunnel. */
export function acceptsTunnel({ method }: HeaderBlock, status: number): boolean {
  return status === SWITCHING_PROTOCOLS || (method === Method.Connect && status >= 200 && status < 300);
}

/**
 * Returns whether the upgrade or the CONNECT of a request is allowed. `allowed`: upgrade types (lower case) of the connection manager, which
 * apply if the route does not decide.
 */
export function allowsUpgrade(
  headers: HeaderBlock,
  route: Route<unknown> | undefined,
  allowed: ReadonlySet<string>,
): boolean {
  const type = typeOf(headers);
  return route?.allowsUpgrade(type) ?? allowed.has(type);
}

function typeOf(headers: HeaderBlock): string {
  if (headers.method === Method.Connect) return CONNECT;
  const index = headers.findId(UPGRADE);
  // With several types the host might switch to one that was not checked.
  const isOne = index >= 0 && headers.findId(UPGRADE, index + 1) < 0;
  const type = isOne ? headers.value(index).toLowerCase() : '';
  // That name stands for the method.
  return type === CONNECT ? '' : type;
}
