// Hosts for tests of long lists.

import { discoverySpec, staticEndpoint } from '../../../src/upstream/discovery-config.js';
import type { ResolvedEndpoint } from '../../../src/upstream/hosts/host.js';

export { HostDirectory } from '../../../src/upstream/hosts/host-directory.js';

/** Returns endpoints with different addresses in one locality. */
export function endpointsOf(count: number): ResolvedEndpoint[] {
  const lb_endpoints = Array.from({ length: count }, (_, i) => ({
    endpoint: { address: { socket_address: { address: `10.0.${i >> 8}.${i & 255}`, port_value: 80 } } },
  }));
  const { endpoints } = discoverySpec({
    name: 'c',
    type: 'STATIC',
    load_assignment: { cluster_name: 'c', endpoints: [{ locality: { zone: 'z' }, lb_endpoints }] },
  });
  return endpoints.flatMap((endpoint) => staticEndpoint(endpoint) ?? []);
}
