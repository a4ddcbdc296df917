// Where the checks of a host go, and how they connect: as the cluster's requests do, but outside of its stats and limits. The
// primary's checks would otherwise look like traffic, by which intervals are chosen, and an open circuit breaker like a dead host.

import { type Address, encodeAddress } from '../../io/addresses/address.js';
import { bufferLimits } from '../../io/transport/buffer-limits.js';
import type { Scope } from '../../stats/thread-stats.js';
import type { CallingThread } from '../calling-thread.js';
import type { ClusterSpec } from '../cluster-config.js';
import type { RequestedCluster } from '../connections/upstream-connection.js';
import { Host, type ResolvedEndpoint } from '../hosts/host.js';
import type { HealthCheckSpec } from './health-check-spec.js';

/** Where connections of checks count: stats that nobody sees. */
export interface UncountedStats {
  /** Of ClusterStats and HostStats. */
  readonly cluster: Scope;
  readonly host: Scope;
}

export interface CheckTarget {
  readonly cluster: RequestedCluster;
  readonly host: Host;
}

/** The address that an endpoint is checked at. */
export function checkAddress({ address, check }: ResolvedEndpoint): Address {
  const base = check?.address ?? address;
  const port = check?.port ?? 0;
  return port === 0 ? base : { ...base, port };
}

/** Of the checks of one endpoint. */
export function checkTarget(
  caller: CallingThread,
  spec: ClusterSpec,
  check: HealthCheckSpec,
  endpoint: ResolvedEndpoint,
  stats: UncountedStats,
): CheckTarget {
  const cluster = {
    thread: caller.begin(),
    spec: {
      ...spec,
      connectTimeoutMs: check.timeoutMs,
      maxRequestsPerConnection: check.reusesConnection ? 0 : 1,
      idleTimeoutMs: 0,
      maxConnectionDurationMs: 0,
    },
    stats: stats.cluster,
    limits: NO_LIMITS,
    bufferLimits: bufferLimits(spec.perConnectionBufferLimit),
  };
  const described = { hostname: endpoint.hostname, zone: '', isCanary: false };
  return { cluster, host: new Host(0, described, encodeAddress(checkAddress(endpoint)), stats.host) };
}

const NO_LIMITS = { release: () => {} };
