// Targets of GoogleGrpc.target_uri (https://github.com/grpc/grpc/blob/master/doc/naming.md): `host:port`, `dns:[//server/]host[:port]`,
// `ipv4:` and `ipv6:` with a list of addresses, and `unix:path`.

import type { Address, Cluster } from '../config/generated/api.js';
import { parseIp } from '../io/addresses/address.js';

/** The port of a name without one. */
const DEFAULT_PORT = 443;

/** Returns the authority of calls to a target. */
export function authorityOf(uri: string): string {
  const { scheme, path } = partsOf(uri);
  return scheme === 'unix' ? 'localhost' : path;
}

/** Returns a cluster named `name` with the target's hosts. */
export function clusterOfTarget(uri: string, name: string): Cluster {
  const { scheme, path } = partsOf(uri);
  const addresses = addressesOf(scheme, path);
  const isName = addresses.some(({ socket_address: socket }) => socket !== undefined && !isIp(socket.address!));
  const lb_endpoints = addresses.map((address) => ({ endpoint: { address } }));
  return {
    name,
    type: isName ? 'STRICT_DNS' : 'STATIC',
    dns_lookup_family: 'ALL',
    http2_protocol_options: {},
    load_assignment: { cluster_name: name, endpoints: [{ lb_endpoints }] },
  };
}

function addressesOf(scheme: string, path: string): Address[] {
  if (scheme === 'unix') return [{ pipe: { path } }];
  const list = scheme === 'dns' ? [path] : path.split(',');
  return list.map((each) => {
    const [, host = each, port] = /^(.*):(\d+)$/.exec(each.replace(/[[\]]/g, '')) ?? [];
    const hasPort = each.includes(']') ? /\]:\d+$/.test(each) : each.split(':').length === 2;
    const address = hasPort ? host : each.replace(/[[\]]/g, '');
    return { socket_address: { address, port_value: hasPort ? Number(port) : DEFAULT_PORT } };
  });
}

function isIp(text: string): boolean {
  return parseIp(text) !== undefined;
}

/** Splits a target that has passed the checks. */
function partsOf(uri: string): { readonly scheme: string; readonly path: string } {
  const [, scheme = 'dns', rest = uri] = /^(dns|unix|ipv4|ipv6):(.+)$/.exec(uri) ?? [];
  // An authority names a DNS server, which is not used.
  const path = rest.replace(/^\/\/[^/]*(\/|$)/, (_, slash: string) => (scheme === 'unix' ? slash : ''));
  return { scheme, path };
}
