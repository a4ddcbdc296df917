// request.*, response.* and source, destination and connection.* attributes.

import { CelDuration, CelTimestamp, type CelValue } from '../../cel/values.js';
import { grpcStatusIn, impliedGrpcStatus } from '../../common/grpc-status.js';
import { byteText } from '../../common/text/byte-text.js';
import { type HeaderKey, headerKey } from '../../common/text/header-names.js';
import { ipOfAddress, portOfAddress } from '../../io/addresses/address.js';
import type { CertificateFacts, ConnectionSecurity } from '../../io/tls/connection-security.js';
import { headBytes } from '../operators/bytes-operators.js';
import type { HeaderView } from '../stream/header-view.js';
import { PROTOCOL_NAMES, Protocol, type StreamInfo, UNSET } from '../stream/stream-info.js';
import { HeaderMap } from './header-map.js';

/** Reads an attribute; undefined: it does not exist (yet). */
export type Attribute = (info: StreamInfo) => CelValue | undefined;
/** By name, without that of the group. */
export type Attributes = { readonly [name: string]: Attribute };

const HOST = headerKey('host');
const CONTENT_LENGTH = headerKey('content-length');
const GRPC_STATUS = headerKey('grpc-status');

export const REQUEST: Attributes = {
  path: pathOf,
  url_path: (info) => pathOrEmpty(info)?.replace(/\?.*/s, ''),
  query: (info) =>
    pathOrEmpty(info)
      ?.replace(/^[^?]*\??/s, '')
      .replace(/#.*/s, ''),
  host: field(HOST),
  scheme: ({ requestHeaders, scheme }) => (requestHeaders === undefined ? undefined : nonEmpty(scheme)),
  method: ({ requestHeaders: head }) => head && nonEmpty(head.memory.text(head.methodStart, head.methodEnd)),
  headers: ({ requestHeaders, scheme }) => new HeaderMap(requestHeaders, scheme),
  referer: field(headerKey('referer')),
  useragent: field(headerKey('user-agent')),
  id: field(headerKey('x-request-id')),
  time: ({ startRealtimeMs }) => CelTimestamp.ofMs(startRealtimeMs),
  protocol: ({ protocol }) => (protocol === Protocol.None ? undefined : PROTOCOL_NAMES[protocol]),
  duration: ({ durationMs }) => (durationMs > 0 ? CelDuration.ofMs(durationMs) : undefined),
  size: requestSize,
  total_size: (info) => BigInt(Math.floor(info.bytesReceived + headBytes.request(info))),
};

export const RESPONSE: Attributes = {
  code: ({ responseCode }) => (responseCode > 0 ? BigInt(responseCode) : undefined),
  code_details: ({ responseCodeDetails }) => nonEmpty(byteText(responseCodeDetails)),
  flags: ({ responseFlags }) => BigInt(envoyFlags(responseFlags)),
  grpc_status: grpcStatus,
  headers: ({ responseHeaders }) => new HeaderMap(responseHeaders, ''),
  trailers: ({ responseTrailers }) => new HeaderMap(responseTrailers, ''),
  size: ({ bytesSent }) => BigInt(bytesSent),
  total_size: (info) => BigInt(info.bytesSent + headBytes.response(info) + headBytes.trailers(info)),
  backend_latency: ({ firstUpstreamTxMs, lastUpstreamRxMs }) => between(firstUpstreamTxMs, lastUpstreamRxMs),
};

export const SOURCE: Attributes = addressAttributes((info) => info.downstreamRemoteAddress);
export const DESTINATION: Attributes = addressAttributes((info) => info.downstreamLocalAddress);

export const CONNECTION: Attributes = {
  id: ({ connectionId }) => BigInt(connectionId),
  mtls: ({ downstreamSecurity }) => downstreamSecurity?.peer !== undefined,
  requested_server_name: ({ downstream }) => downstream?.detected?.serverName || downstream?.security?.serverName || '',
  termination_details: ({ connectionTerminationDetails: text }) => nonEmpty(byteText(text)),
  transport_failure_reason: (info) => nonEmpty(byteText(info.downstreamTransportFailureReason)),
  ...securityAttributes((info) => info.downstreamSecurity),
};

export function addressAttributes(textOf: (info: StreamInfo) => string): Attributes {
  return {
    address: (info) => nonEmpty(textOf(info)),
    port(info) {
      const text = textOf(info);
      return ipOfAddress(text) === '' ? undefined : BigInt(portOfAddress(text));
    },
  };
}

/** What TLS has established; of names only the first one. As in Envoy, the subject of a certificate that is missing is empty. */
export function securityAttributes(of: (info: StreamInfo) => ConnectionSecurity | undefined): Attributes {
  const text =
    (side: 'local' | 'peer', read: (certificate: CertificateFacts) => string | undefined): Attribute =>
    (info) => {
      const certificate = of(info)?.[side];
      return certificate && nonEmpty(byteText(read(certificate) ?? ''));
    };
  const subject =
    (side: 'local' | 'peer'): Attribute =>
    (info) => {
      const security = of(info);
      return security && byteText(security[side]?.subject ?? '');
    };
  return {
    tls_version: (info) => of(info)?.version,
    subject_local_certificate: subject('local'),
    subject_peer_certificate: subject('peer'),
    dns_san_local_certificate: text('local', ({ dnsSans }) => dnsSans[0]),
    dns_san_peer_certificate: text('peer', ({ dnsSans }) => dnsSans[0]),
    uri_san_local_certificate: text('local', ({ uriSans }) => uriSans[0]),
    uri_san_peer_certificate: text('peer', ({ uriSans }) => uriSans[0]),
    sha256_peer_certificate_digest: text('peer', ({ sha256 }) => sha256),
  };
}

export function nonEmpty(text: string): string | undefined {
  return text === '' ? undefined : text;
}

/** Returns the time between two monotonic times; undefined while one of them is unknown. */
export function between(startMs: number, endMs: number): CelDuration | undefined {
  return startMs === UNSET || endMs === UNSET ? undefined : CelDuration.ofMs(endMs - startMs);
}

function field(key: HeaderKey): Attribute {
  return ({ requestHeaders }) => requestHeaders?.get(key);
}

function pathOf({ requestHeaders: head }: StreamInfo): string | undefined {
  return head && nonEmpty(head.memory.text(head.pathStart, head.pathEnd));
}

/** As in Envoy, the parts of the path of a CONNECT are empty, so that a condition on them is no error. */
function pathOrEmpty(info: StreamInfo): string | undefined {
  return info.requestHeaders && (pathOf(info) ?? '');
}

/** The content-length, or else the bytes received so far. */
function requestSize(info: StreamInfo): bigint {
  const declared = info.requestHeaders?.get(CONTENT_LENGTH);
  return declared !== undefined && /^\d{1,18}$/.test(declared) ? BigInt(declared) : BigInt(info.bytesReceived);
}

function grpcStatus({ responseCode, responseHeaders, responseTrailers }: StreamInfo): bigint | undefined {
  const status = statusIn(responseTrailers) ?? statusIn(responseHeaders);
  if (status === undefined && responseCode === 0) return undefined;
  return BigInt(status ?? impliedGrpcStatus(responseCode));
}

function statusIn(head: HeaderView | undefined): number | undefined {
  return head && grpcStatusIn(head, GRPC_STATUS);
}

/** The bits of Envoy's response flags, by those of ResponseFlag up to DownstreamConnectionTermination; all others are the same. */
const ENVOY_BITS = [7, 15, 0, 1, 2, 3, 4, 5, 6, 8, 9, 10, 11, 12, 13, 14];
const CONNECT_ATTEMPTS_EXCEEDED = 30;

function envoyFlags(flags: number): number {
  let result = 0;
  for (let bit = 0; bit <= CONNECT_ATTEMPTS_EXCEEDED; bit++) {
    if (((flags >>> bit) & 1) === 0) continue;
    result |= 1 << (bit === CONNECT_ATTEMPTS_EXCEEDED ? ENVOY_BITS[1]! : (ENVOY_BITS[bit] ?? bit));
  }
  return result;
}
