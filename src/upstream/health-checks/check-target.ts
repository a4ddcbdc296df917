// How the checks of a host connect: as the cluster's requests do, but outside of its stats and limits. Otherwise checks would
// count as traffic, which selects the interval, and an open circuit breaker would look like a dead host.

import type { ClientProtocol } from '../../http/codec/connections.js';
import { DEFAULT_HTTP2_OPTIONS } from '../../http/codec/options.js';
import { h1Client } from '../../http/h1/protocol.js';
import { h2Client } from '../../http/h2/protocol.js';
import { type Address, encodeAddress } from '../../io/addresses/address.js';
import { bufferLimits } from '../../io/transport/buffer-limits.js';
import type { Scope } from '../../stats/thread-stats.js';
import type { CallingThread } from '../calling-thread.js';
import type { ClusterSpec } from '../cluster-config.js';
import type { ConnectOptions } from '../connections/connect-options.js';
import { HostTransport } from '../connections/host-transport.js';
import type { RequestedCluster } from '../connections/upstream-connection.js';
import { Host, type ResolvedEndpoint } from '../hosts/host.js';
import { NOWHERE } from '../hosts/locality.js';
import { OWN_TRANSPORT } from '../hosts/transport-matches.js';
import type { HealthCheckSpec } from './health-check-spec.js';

/** Stats of check connections, which are not shown. */
export interface UncountedStats {
  /** Scopes with layouts ClusterStats and HostStats. */
  readonly cluster: Scope;
  readonly host: Scope;
  /** With the layout Http2Stats. */
  readonly http2: Scope;
}

export interface CheckTarget {
  readonly cluster: RequestedCluster;
  readonly host: Host;
  /** The protocol of checks that send a request. */
  readonly protocol: ClientProtocol;
  readonly options: ConnectOptions;
}

/** Returns the address at which an endpoint is checked. */
export function checkAddress({ address, check }: ResolvedEndpoint): Address {
  const base = check?.address ?? address;
  const port = check?.port ?? 0;
  return port === 0 ? base : { ...base, port };
}

/** The part of a health check that connections need. */
export type CheckConnection = Pick<HealthCheckSpec, 'alpn' | 'check' | 'reusesConnection' | 'timeoutMs' | 'transport'>;

/** Returns the cluster and host for the checks of one endpoint. */
export function checkTarget(
  caller: CallingThread,
  spec: ClusterSpec,
  check: CheckConnection,
  endpoint: ResolvedEndpoint,
  stats: UncountedStats,
): CheckTarget {
  const thread = caller.begin();
  const transport = spec.transports[check.transport ?? endpoint.transport ?? OWN_TRANSPORT];
  const hostTransport = transport ? new HostTransport(transport, thread.stats) : undefined;
  const cluster = {
    thread,
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
    transportOf: () => hostTransport,
  };
  const described = {
    hostname: endpoint.hostname,
    locality: NOWHERE,
    localityMetadata: endpoint.localityMetadata,
    isCanary: false,
    metadata: endpoint.metadata,
    transport: OWN_TRANSPORT,
    // As in Envoy, only the first address is checked.
    additional: undefined,
  };
  const usesHttp2 = check.check.kind === 'grpc' || (check.check.kind === 'http' && check.check.usesHttp2);
  return {
    cluster,
    host: new Host(0, described, encodeAddress(checkAddress(endpoint)), stats.host),
    protocol: usesHttp2
      ? h2Client(thread.memory, spec.http2 ?? DEFAULT_HTTP2_OPTIONS, stats.http2)
      : h1Client(thread.memory, spec.http1),
    options: { alpn: check.alpn, replacesAlpn: true, traits: undefined },
  };
}

const NO_LIMITS = { release: () => {} };
