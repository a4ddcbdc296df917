// The log records of a UDP proxy and of its sessions.

import { randomUUID } from 'node:crypto';
import {
  type AccessLogger,
  addressOfSockaddr,
  addressText,
  type Clock,
  ResponseFlag,
  type StreamInfo,
} from '../../../sdk.js';
import { describeClient } from '../common/describe-client.js';
import type { SessionCounts, UdpSession } from './session.js';
import type { UdpProxySettings } from './settings.js';

/** Logs a session. `info` is reused. */
export function logSession(
  session: UdpSession,
  logs: readonly AccessLogger[],
  type: 'UdpSessionEnd' | 'UdpPeriodic',
  info: StreamInfo,
  clock: Clock,
): void {
  if (logs.length === 0) return;
  const { cluster, host, localAddress } = session;
  info.reset(session.startRealtimeMs, session.startMonotonicMs);
  info.accessLogType = type;
  info.durationMs = clock.monotonicMs - session.startMonotonicMs;
  info.downstream = describeClient(session.client);
  info.bytesReceived = session.bytesReceived;
  info.bytesSent = session.bytesSent;
  info.connectionId = session.number;
  session.streamId ||= randomUUID();
  info.streamId = session.streamId;
  if (host === undefined) info.responseFlags = ResponseFlag.UpstreamOverflow;
  else {
    info.host = host;
    info.upstreamHost = host.address;
  }
  if (localAddress !== undefined) info.upstreamLocalAddress = addressText(addressOfSockaddr(localAddress));
  info.ownDynamicMetadata().set('udp.proxy.session', {
    bytes_received: session.bytesReceived,
    bytes_sent: session.bytesSent,
    cluster_name: cluster.name,
    datagrams_received: session.datagramsReceived,
    datagrams_sent: session.datagramsSent,
    errors_sent: session.errorsSent,
  });
  for (const log of logs) log.log(info);
}

/** What the log record of a proxy contains. */
export interface ProxyTotals {
  readonly startRealtimeMs: number;
  readonly startMonotonicMs: number;
  /** Bytes of all datagrams from clients, also of those that were not forwarded. */
  readonly bytesReceived: number;
  readonly bytesSent: number;
  readonly idleTimeouts: number;
  readonly noRoutes: number;
  readonly receiveErrors: number;
  readonly sessionTotal: number;
  /** Sums of the sessions that have ended. */
  readonly ended: Readonly<SessionCounts>;
}

/** Logs a proxy at its end. */
export function logProxy(proxy: ProxyTotals, { proxyLogs }: UdpProxySettings, info: StreamInfo, clock: Clock): void {
  if (proxyLogs.length === 0) return;
  const { ended } = proxy;
  info.reset(proxy.startRealtimeMs, proxy.startMonotonicMs);
  info.durationMs = clock.monotonicMs - proxy.startMonotonicMs;
  info.bytesReceived = proxy.bytesReceived;
  info.bytesSent = proxy.bytesSent;
  // It has none.
  info.streamId = '-';
  info.ownDynamicMetadata().set('udp.proxy.proxy', {
    bytes_received: ended.bytesReceived,
    bytes_sent: ended.bytesSent,
    datagrams_received: ended.datagramsReceived,
    datagrams_sent: ended.datagramsSent,
    errors_received: proxy.receiveErrors,
    errors_sent: ended.errorsSent,
    idle_timeout: proxy.idleTimeouts,
    no_route: proxy.noRoutes,
    session_total: proxy.sessionTotal,
  });
  for (const log of proxyLogs) log.log(info);
}
