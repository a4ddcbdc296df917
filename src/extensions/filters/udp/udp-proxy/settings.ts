// What a UDP proxy does, from its configuration.

import type { Any, UdpProxyConfig, UdpProxyRoute } from '../../../../config/generated/api.js';
import {
  type AccessLogger,
  BatonError,
  type ClusterReference,
  createAccessLoggers,
  durationMs,
  rxDatagramBytes,
  type StreamInfo,
  type Word64,
  type WorkerContext,
  xxh64Text,
} from '../../../sdk.js';
import { compileMatcher, type MatchBuilder } from '../../common/matching/matcher.js';

const DEFAULT_IDLE_MS = 60_000;

export const ROUTE = 'envoy.extensions.filters.udp.udp_proxy.v3.Route';

export interface UdpProxySettings {
  /** Returns the cluster for a new session; undefined: no route matches. `info` has its addresses. */
  route(info: StreamInfo): ClusterReference | undefined;
  readonly idleMs: number;
  /** Longer datagrams of hosts are dropped. */
  readonly maxBytes: number;
  readonly usesClientAddress: boolean;
  readonly picksPerDatagram: boolean;
  /** Sets `hash` for a client; undefined: without one. */
  readonly hash: ((clientIp: string, hash: Word64) => void) | undefined;
  readonly sessionLogs: readonly AccessLogger[];
  readonly periodicLogs: readonly AccessLogger[];
  /** 0: sessions are logged only at their end. */
  readonly logIntervalMs: number;
  readonly proxyLogs: readonly AccessLogger[];
}

export function udpProxySettings(config: UdpProxyConfig, context: WorkerContext): UdpProxySettings {
  const interval = config.access_log_options?.access_log_flush_interval;
  return {
    route: routeOf(config, context),
    idleMs: durationMs(config.idle_timeout, DEFAULT_IDLE_MS),
    maxBytes: rxDatagramBytes(config.upstream_socket_config, true),
    usesClientAddress: config.use_original_src_ip ?? false,
    picksPerDatagram: config.use_per_packet_load_balancing ?? false,
    hash: hashOf(config),
    sessionLogs: createAccessLoggers(config.access_log, 'UdpSessionEnd', context),
    periodicLogs: interval === undefined ? [] : createAccessLoggers(config.access_log, 'UdpPeriodic', context),
    logIntervalMs: interval === undefined ? 0 : durationMs(interval),
    proxyLogs: createAccessLoggers(config.proxy_access_log, 'NotSet', context),
  };
}

function routeOf(config: UdpProxyConfig, { clusters, stats }: WorkerContext): UdpProxySettings['route'] {
  if (config.matcher === undefined) {
    const reference = clusters.reference(config.cluster!);
    return () => reference;
  }
  const tree = compileMatcher(
    config.matcher,
    'matcher',
    routeActions((name) => clusters.reference(name)),
  );
  return (info) => tree.find({ headers: undefined, info, stats });
}

/** Returns a builder of actions, each of which is what `of` returns for its cluster. */
export function routeActions<A>(of: (cluster: string) => A): MatchBuilder<A> {
  return {
    isHttp: false,
    action(route: Any, where: string) {
      if (route['@type'].endsWith(`/${ROUTE}`)) return of((route as unknown as UdpProxyRoute).cluster!);
      throw new BatonError('CONFIG_INVALID', `the action of a UDP proxy is a ${ROUTE}`, { where });
    },
  };
}

function hashOf({ hash_policies: [policy] = [] }: UdpProxyConfig): UdpProxySettings['hash'] {
  if (policy === undefined) return undefined;
  const { key } = policy;
  return (clientIp, hash) => xxh64Text(key ?? clientIp, hash);
}
