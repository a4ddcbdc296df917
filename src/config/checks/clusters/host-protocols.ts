// The protocols of a cluster's hosts: settings that contradict each other, or that need TLS.

import {
  HTTP_OPTIONS,
  hostProtocol,
  http2Options,
  httpOptions,
  protocolOptions,
  upstreamHttpOptions,
} from '../../fields/http-options.js';
import { upstreamTransport } from '../../fields/upstream-transport.js';
import type { Cluster, TransportSocket, UpstreamTlsContext } from '../../generated/api.js';
import type { Path } from '../../text/path.js';
import type { Problems } from '../../text/problems.js';

/** Fields of the cluster that HttpProtocolOptions replace as a whole. */
const REPLACED = ['upstream_http_protocol_options', 'common_http_protocol_options', 'http_protocol_options'] as const;

export function checkHostProtocols(cluster: Cluster, path: Path, problems: Problems): void {
  const options = httpOptions(cluster);
  const protocol = hostProtocol(cluster);
  const report = (field: string, why: string) => problems.error([...path, field], why, 'key');
  if (options !== undefined) {
    const takesPrecedence = `the cluster's '${HTTP_OPTIONS}' take precedence: leave it out`;
    if (cluster.http2_protocol_options !== undefined && protocol !== 'HTTP2')
      report('http2_protocol_options', takesPrecedence);
    if (cluster.protocol_selection === 'USE_DOWNSTREAM_PROTOCOL' && protocol !== 'AS_CLIENT')
      report('protocol_selection', takesPrecedence);
    for (const field of REPLACED) if (cluster[field] !== undefined) report(field, takesPrecedence);
  }
  if (http2Options(cluster) !== undefined) checkKeepalive(cluster, path, problems);
  const sockets = socketsOf(cluster, path);
  for (const { at, socket } of sockets.slice(1)) {
    if (socket === undefined) problems.error(at, 'it needs a transport_socket: a TLS context, or a raw_buffer');
  }
  const plain = sockets.findIndex(({ socket }) => tlsOf(socket) === undefined);
  if (protocol === 'NEGOTIATED' && plain >= 0) {
    const at = [...path, 'typed_extension_protocol_options', HTTP_OPTIONS, 'auto_config'];
    const which = plain === 0 ? 'transport socket' : `transport socket matcher: '${sockets[plain]!.name}'`;
    const why = `ALPN configured for cluster ${cluster.name} which has a non-ALPN ${which}: give it a TLS context`;
    problems.error(at, why, 'key');
  }
  checkNames(cluster, sockets, path, problems);
}

interface SocketAt {
  readonly socket: TransportSocket | undefined;
  /** Path of its owner. */
  readonly at: Path;
  readonly name: string;
}

/** The transport socket of the cluster, and those of its matches. */
function socketsOf(cluster: Cluster, path: Path): SocketAt[] {
  const matches = (cluster.transport_socket_matches ?? []).map((match, index) => ({
    socket: match?.transport_socket,
    at: [...path, 'transport_socket_matches', index],
    name: match?.name ?? '',
  }));
  return [{ socket: cluster.transport_socket, at: path, name: '' }, ...matches];
}

function tlsOf(socket: TransportSocket | undefined): UpstreamTlsContext | undefined {
  return upstreamTransport(socket).tls;
}

/** Reports names that could not be verified, or not be found. */
function checkNames(cluster: Cluster, sockets: readonly SocketAt[], path: Path, problems: Problems): void {
  const { auto_san_validation: isVerified, override_auto_sni_header: header = '' } = upstreamHttpOptions(cluster) ?? {};
  const typed = [...path, 'typed_extension_protocol_options', HTTP_OPTIONS];
  const options = [...(httpOptions(cluster) === undefined ? path : typed), 'upstream_http_protocol_options'];
  if (header.startsWith(':') && ![':authority', ':path', ':method'].includes(header.toLowerCase())) {
    problems.error([...options, 'override_auto_sni_header'], `requests have no '${header}' here: name a header`);
  }
  const unverified = sockets.filter(({ socket }) => isUnverified(tlsOf(socket)));
  if (isVerified && unverified.length > 0) {
    const why = 'no host would be accepted without a validation_context in the TLS context: set its trusted_ca';
    problems.error([...options, 'auto_san_validation'], why, 'key');
  }
  for (const { at, socket } of unverified) {
    if (!tlsOf(socket)?.auto_sni_san_validation) continue;
    const field = [...at, 'transport_socket', 'typed_config', 'auto_sni_san_validation'];
    problems.error(field, "'auto_sni_san_validation' was configured without a validation context", 'key');
  }
}

function isUnverified(context: UpstreamTlsContext | undefined): boolean {
  const common = context?.common_tls_context ?? {};
  return (
    context !== undefined &&
    common.validation_context === undefined &&
    common.validation_context_sds_secret_config === undefined &&
    common.combined_validation_context === undefined
  );
}

/** Reports keepalive settings that have no effect. */
function checkKeepalive(cluster: Cluster, path: Path, problems: Problems): void {
  const { holder, protocols } = protocolOptions(cluster);
  const typed = protocols.http2_protocol_options;
  const field = ['http2_protocol_options', 'connection_keepalive'];
  const at = [...path, ...field];
  const keepalive = cluster.http2_protocol_options?.connection_keepalive;
  if (typed !== undefined && keepalive !== undefined) {
    const why = `the cluster's '${HTTP_OPTIONS}' have http2_protocol_options, which take precedence: set it there`;
    problems.error(at, why, 'key');
  }
  for (const [settings, place] of [
    [typed?.connection_keepalive, [...path, 'typed_extension_protocol_options', HTTP_OPTIONS, holder, ...field]],
    [keepalive, at],
  ] as const) {
    if (
      settings === undefined ||
      INTERVALS.some((name) => settings[name] !== undefined || problems.has([...place, name]))
    )
      continue;
    problems.error(place, 'it has no effect without an interval', 'key');
  }
}

const INTERVALS = ['interval', 'connection_idle_interval'] as const;
