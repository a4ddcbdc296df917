// A dynamic forward proxy cluster, as filters before the router use it.

import type { ClusterReference } from '../cluster-manager.js';
import { withPort } from './name-reader.js';
import type { RequestedHosts } from './requested-hosts.js';

export interface ForwardProxy {
  readonly hosts: RequestedHosts;
  /** Returns the key of a host: the authority with its port, or else `port`, or that of the cluster. */
  keyOf(authority: string, port?: number): string;
}

/** Returns undefined for clusters of other kinds. `reference`: the cluster of a route, on a worker. */
export function forwardProxyOf(reference: unknown): ForwardProxy | undefined {
  const { requestedHosts: hosts, spec } = (reference as ClusterReference | undefined)?.current ?? {};
  const destination = spec?.destination;
  if (hosts === undefined || destination?.kind !== 'name') return undefined;
  return { hosts, keyOf: (authority, port = destination.defaultPort) => withPort(authority, port) };
}
