// The other addresses of an endpoint.

import type { HostSource } from '../../fields/discovery.js';
import type { Endpoint } from '../../generated/api.js';
import type { Path } from '../../text/path.js';
import type { Problems } from '../../text/problems.js';
import { checkConnected, checkPipe, isPlainIp } from '../addresses.js';

/** Connects to a host that is down try each of them. */
const MAX_ADDITIONAL = 31;

/** `path`: of the endpoint. */
export function checkAdditional(type: HostSource, endpoint: Endpoint, path: Path, problems: Problems): void {
  const list = endpoint.additional_addresses ?? [];
  const at = [...path, 'additional_addresses'];
  if (list.length > 0 && type !== 'STATIC' && type !== 'EDS') {
    const text = `a ${type} cluster resolves names, which have all the addresses of a host: leave it out`;
    return problems.error(at, text, 'key');
  }
  if (list.length > MAX_ADDITIONAL)
    problems.error(at, `an endpoint has at most ${MAX_ADDITIONAL} additional addresses, found ${list.length}`);
  list.forEach((entry, index) => {
    const address = entry?.address;
    const addressAt = [...at, index, 'address'];
    if (!address) {
      if (!problems.has(addressAt)) problems.error([...at, index], 'Address must be set');
      return;
    }
    checkConnected(address.socket_address, [...addressAt, 'socket_address'], problems);
    checkPipe(address.pipe, [...addressAt, 'pipe'], problems);
    const host = address.socket_address?.address;
    if (host === undefined || isPlainIp(host)) return;
    problems.error([...addressAt, 'socket_address', 'address'], `malformed IP address: ${host}`);
  });
}
