// Tags and events of spans, as Envoy's HttpTracerUtility sets them at the end of a request and of each of its tries.

import type { HeaderView } from '../../access-log/stream/header-view.js';
import { shortFlags } from '../../access-log/stream/response-flags.js';
import { PROTOCOL_NAMES, type StreamInfo, UNSET } from '../../access-log/stream/stream-info.js';
import { byteText } from '../../common/text/byte-text.js';
import { type HeaderKey, headerKey } from '../../common/text/header-names.js';
import { ipOfAddress } from '../../io/addresses/address.js';
import type { Span } from './tracer.js';

const HOST = headerKey('host');
const USER_AGENT = headerKey('user-agent');
const REQUEST_ID = headerKey('x-request-id');
const CLIENT_TRACE_ID = headerKey('x-client-trace-id');
const DOWNSTREAM_CLUSTER = headerKey('x-envoy-downstream-service-cluster');
const ORIGINAL_PATH = headerKey('x-envoy-original-path');
const CONTENT_TYPE = headerKey('content-type');
const GRPC_TIMEOUT = headerKey('grpc-timeout');
const GRPC_STATUS = headerKey('grpc-status');
const GRPC_MESSAGE = headerKey('grpc-message');

/** Statuses of gRPC that are the fault of the called service: UNKNOWN, DEADLINE_EXCEEDED, UNIMPLEMENTED, INTERNAL, UNAVAILABLE, DATA_LOSS. */
const GRPC_FAULTS = new Set(['2', '4', '12', '13', '14', '15']);

/** Sets the tags of the span of a whole request. */
export function tagRequest(span: Span, info: StreamInfo, isGrpc: boolean, maxPathLength: number, isVerbose: boolean) {
  const { requestHeaders: head } = info;
  // The head of an invalid request may have no path: Envoy reports nothing of it.
  if (head !== undefined) tagHead(span, info, head, isGrpc, maxPathLength);
  span.setTag('request_size', String(info.bytesReceived));
  span.setTag('response_size', String(info.bytesSent));
  tagOutcome(span, info, info.responseCode, info.responseFlags);
  if (isVerbose) logTimes(span, info, true);
}

/** Sets the tags of the span of a try. `status`: 0 without a response. */
export function tagTry(span: Span, info: StreamInfo, status: number, flags: number, isVerbose: boolean): void {
  span.setTag('http.protocol', PROTOCOL_NAMES[info.upstreamProtocol] || '-');
  if (info.upstreamHost !== '') {
    span.setTag('upstream_address', info.upstreamHost);
    span.setTag('peer.address', info.upstreamHost);
  }
  tagOutcome(span, info, status, flags);
  if (isVerbose) logTimes(span, info, false);
}

/** Sets the status of a gRPC call, if `head`, a response's head or trailers, has one. Returns whether it has. */
export function tagGrpcStatus(span: Span, head: HeaderView | undefined): boolean {
  const status = head?.get(GRPC_STATUS);
  if (status === undefined) return false;
  span.setTag('grpc.status_code', status);
  setIfPresent(span, 'grpc.message', head!, GRPC_MESSAGE);
  if (GRPC_FAULTS.has(status)) span.setTag('error', 'true');
  return true;
}

function tagHead(span: Span, info: StreamInfo, head: HeaderView, isGrpc: boolean, maxPathLength: number): void {
  const path = head.get(ORIGINAL_PATH) ?? head.memory.text(head.pathStart, head.pathEnd);
  const host = head.get(HOST) ?? '';
  setIfPresent(span, 'guid:x-request-id', head, REQUEST_ID);
  span.setTag('http.url', path === '' ? '' : `${info.scheme || 'http'}://${host}${path.slice(0, maxPathLength)}`);
  span.setTag('http.method', head.memory.text(head.methodStart, head.methodEnd));
  span.setTag('downstream_cluster', head.get(DOWNSTREAM_CLUSTER) || '-');
  span.setTag('user_agent', head.get(USER_AGENT) || '-');
  span.setTag('http.protocol', PROTOCOL_NAMES[info.protocol] || '-');
  const peer = info.downstreamDirectRemoteAddress;
  span.setTag('peer.address', ipOfAddress(peer) || peer);
  setIfPresent(span, 'guid:x-client-trace-id', head, CLIENT_TRACE_ID);
  if (!isGrpc) return;
  if (path !== '') span.setTag('grpc.path', head.memory.text(head.pathStart, head.pathEnd));
  span.setTag('grpc.authority', host);
  setIfPresent(span, 'grpc.content_type', head, CONTENT_TYPE);
  setIfPresent(span, 'grpc.timeout', head, GRPC_TIMEOUT);
}

/** Sets the tags that both kinds of spans have. */
function tagOutcome(span: Span, info: StreamInfo, status: number, flags: number): void {
  const { upstreamCluster: cluster } = info;
  span.setTag('component', 'proxy');
  if (cluster !== undefined) {
    span.setTag('upstream_cluster', byteText(cluster.name));
    span.setTag('upstream_cluster.name', byteText(cluster.observabilityName));
  }
  span.setTag('http.status_code', String(status));
  span.setTag('response_flags', flags === 0 ? '-' : shortFlags(flags));
  if (status === 0 || (status >= 500 && status < 600)) span.setTag('error', 'true');
}

/** Adds events for the times that are known (Tracing.verbose). */
function logTimes(span: Span, info: StreamInfo, ofRequest: boolean): void {
  const log = (atMs: number, event: string) => {
    if (atMs !== UNSET) span.log(info.startRealtimeMs + atMs - info.startMonotonicMs, event);
  };
  if (ofRequest) log(info.lastDownstreamRxMs, 'last_downstream_rx_byte_received');
  log(info.firstUpstreamTxMs, 'first_upstream_tx_byte_sent');
  log(info.lastUpstreamTxMs, 'last_upstream_tx_byte_sent');
  log(info.firstUpstreamRxMs, 'first_upstream_rx_byte_received');
  log(info.lastUpstreamRxMs, 'last_upstream_rx_byte_received');
  if (!ofRequest) return;
  log(info.firstDownstreamTxMs, 'first_downstream_tx_byte_sent');
  log(info.lastDownstreamTxMs, 'last_downstream_tx_byte_sent');
}

function setIfPresent(span: Span, tag: string, head: HeaderView, key: HeaderKey): void {
  const value = head.get(key);
  if (value !== undefined) span.setTag(tag, value);
}
