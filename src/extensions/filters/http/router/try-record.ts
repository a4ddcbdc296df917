// Records a try in the stream's info: the host, its connection, and when it was ready.

import type { StreamInfo } from '../../../../access-log/stream/stream-info.js';
import type { RequestEncoder } from '../../../../http/codec/streams.js';
import type { ClusterHost } from '../../../../upstream/cluster.js';
import type { HostConnection } from '../../../../upstream/connections/host-connection.js';
import type { UpstreamTry } from './upstream-try.js';

/** Called when the host of a try is known. */
export function recordHost(info: StreamInfo, host: ClusterHost): void {
  info.host = host;
  info.upstreamHost = host.address;
}

/** Called when the try has a connection, on which the request begins now. */
export function recordConnection(
  info: StreamInfo,
  current: UpstreamTry,
  encoder: RequestEncoder,
  connection: HostConnection,
): void {
  recordHost(info, current.host!);
  info.upstreamConnectionId = connection.serial;
  info.upstreamConnectStartMs = connection.startMs;
  info.upstreamConnectEndMs = connection.connectedMs;
  info.poolReadyMs = current.startMs;
  info.runningTryBytes = encoder.bytes;
  info.upstreamProtocol = encoder.protocol;
  info.firstUpstreamTxMs = current.startMs;
  info.upstreamLocalAddress = connection.localText;
  info.upstreamSecurity = connection.security;
  info.upstreamRemoteAddress = connection.peerText || info.upstreamHost;
}
