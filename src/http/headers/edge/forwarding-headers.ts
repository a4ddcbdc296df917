// Processes the headers of an incoming request: determines the client's address, removes headers that the client may not send, and adds
// those for the next hop. Like Envoy's ConnectionManagerUtility::mutateRequestHeaders.

import type { Random } from '../../../common/random.js';
import { byteText } from '../../../common/text/byte-text.js';
import { type HeaderKey, headerKey, knownHeader } from '../../../common/text/header-names.js';
import type { HttpConnectionManager } from '../../../config/generated/api.js';
import { ipAddress } from '../../../io/addresses/address.js';
import type { ConnectionSecurity } from '../../../io/tls/connection-security.js';
import type { HeaderBlock } from '../header-block.js';
import { beginLine, endLine, HeaderLine, writeLatin1 } from '../header-line.js';
import { type ClientCertificateConfig, ClientCertificateRules } from './client-certificate.js';
import { sanitizeExternal } from './control-headers.js';
import { EdgeLines, isLoopback, mappedPrefix } from './edge-lines.js';
import { ForwardedPort } from './forwarded-port.js';
import { InternalAddresses } from './internal-addresses.js';
import { OriginalIpDetection } from './original-ip.js';
import { sanitizeReferer } from './referer.js';
import { REQUEST_ID_BYTES, writeRequestId } from './request-id.js';
import { clearTraceReason, requestIdRules } from './request-id-rules.js';
import { schemeAt } from './request-scheme.js';

/** The fields of HttpConnectionManager that are read here. */
export type ForwardingConfig = Pick<
  HttpConnectionManager,
  | 'use_remote_address'
  | 'xff_num_trusted_hops'
  | 'skip_xff_append'
  | 'via'
  | 'generate_request_id'
  | 'preserve_external_request_id'
  | 'internal_address_config'
  | 'add_user_agent'
  | 'represent_ipv4_remote_address_as_ipv4_mapped_ipv6'
  | 'append_x_forwarded_port'
  | 'scheme_header_transformation'
  | 'request_id_extension'
  | 'original_ip_detection_extensions'
> &
  ClientCertificateConfig;

/** The server's own address and names. */
export interface LocalIdentity {
  /** The server's own address: x-forwarded-for has it for clients on the loopback interface. */
  readonly ip: string;
  /** --service-cluster and --service-node; '' if not set. */
  readonly cluster: string;
  readonly node: string;
  /** --service-zone; '' if not set. */
  readonly zone: string;
}

/** The properties of a client connection that the rules use. */
export interface EdgeConnection {
  /** The peer's address without port; '' for Unix sockets. */
  readonly remoteIp: string;
  readonly scheme: 'http' | 'https';
  /** The port that the client connected to; '' for Unix sockets. */
  readonly localPort: string;
  /** What TLS has established; undefined without TLS. */
  readonly security: ConnectionSecurity | undefined;
}

/** There is one for each connection manager and thread. */
export class ForwardingRules {
  /** Whether the request of the last apply() is internal. */
  isInternal = false;
  /** The status of the answer to the last request if it must be refused; 0: it is not. */
  refusal = 0;

  readonly #usesRemoteAddress: boolean;
  readonly #trustedHops: number;
  readonly #appendsRemote: boolean;
  readonly #generatesRequestId: boolean;
  readonly #preservesRequestId: boolean;
  /** Request IDs carry the reason of a trace. */
  readonly #packsReason: boolean;
  readonly #internal: InternalAddresses | undefined;
  readonly #via: string;
  readonly #ip4Prefix: string;
  /** scheme_to_overwrite: every request has this scheme. */
  readonly #scheme: 'http' | 'https' | undefined;
  readonly #ports: ForwardedPort | undefined;
  readonly #localIp: string;
  readonly #detection: OriginalIpDetection | undefined;
  /** Undefined (SANITIZE): x-forwarded-client-cert is removed. */
  readonly #certificates: ClientCertificateRules | undefined;
  readonly #userAgent: HeaderLine | undefined;
  readonly #serviceCluster: HeaderLine;
  readonly #serviceNode: HeaderLine | undefined;
  /** For most requests at the edge: no proxy has forwarded them, and Baton generates their ID. */
  readonly #edgeLines: EdgeLines | undefined;

  constructor(config: ForwardingConfig, local: LocalIdentity) {
    this.#usesRemoteAddress = config.use_remote_address ?? false;
    this.#trustedHops = config.xff_num_trusted_hops ?? 0;
    this.#appendsRemote = !(config.skip_xff_append ?? false);
    this.#generatesRequestId = config.generate_request_id ?? true;
    this.#preservesRequestId = config.preserve_external_request_id ?? false;
    this.#packsReason = requestIdRules(config.request_id_extension).packsReason;
    this.#internal = InternalAddresses.of(config.internal_address_config);
    this.#via = byteText(config.via ?? '');
    this.#ip4Prefix = config.represent_ipv4_remote_address_as_ipv4_mapped_ipv6 ? '::ffff:' : '';
    this.#scheme = config.scheme_header_transformation?.scheme_to_overwrite as 'http' | 'https' | undefined;
    this.#ports = config.append_x_forwarded_port
      ? new ForwardedPort(this.#usesRemoteAddress && this.#trustedHops === 0)
      : undefined;
    this.#localIp = local.ip;
    this.#detection = OriginalIpDetection.of(config.original_ip_detection_extensions, EXTENSIONS);
    const { forward_client_cert_details: certificates = 'SANITIZE' } = config;
    this.#certificates = certificates === 'SANITIZE' ? undefined : new ClientCertificateRules(config);
    this.#userAgent = config.add_user_agent ? new HeaderLine(USER_AGENT, local.cluster) : undefined;
    this.#serviceCluster = new HeaderLine(SERVICE_CLUSTER, local.cluster);
    this.#serviceNode = local.node === '' ? undefined : new HeaderLine(SERVICE_NODE, local.node);
    const isUsualEdge =
      this.#usesRemoteAddress &&
      this.#trustedHops === 0 &&
      this.#appendsRemote &&
      this.#generatesRequestId &&
      !this.#preservesRequestId;
    this.#edgeLines = isUsualEdge ? new EdgeLines(this.#localIp, this.#ip4Prefix) : undefined;
  }

  /**
   * Applies the rules to a request. Returns the trusted address of the client.
   * @param internalOnly further headers to remove from external requests (RouteConfiguration.internal_only_headers)
   */
  apply(
    headers: HeaderBlock,
    connection: EdgeConnection,
    random: Random,
    internalOnly: readonly HeaderKey[] = NO_KEYS,
  ): string {
    headers.removeId(INTERNAL.id);
    if (headers.mayHave(REFERER)) sanitizeReferer(headers);
    const peer = connection.remoteIp;
    const hasForwardedFor = headers.mayHave(FORWARDED_FOR.id) && headers.findId(FORWARDED_FOR.id) >= 0;
    const edgeLines = this.#edgeLines;
    if (edgeLines !== undefined && !hasForwardedFor && peer !== '' && this.#internal?.has(peer) !== true) {
      this.isInternal = false;
      sanitizeExternal(headers, true, internalOnly);
      this.#reportCertificate(headers, connection);
      const scheme = this.#scheme;
      if (scheme !== undefined) headers.scheme = scheme;
      edgeLines.addTo(headers, peer, scheme ?? connection.scheme, random);
      this.#ports?.addTo(headers, connection.localPort);
      if (this.#userAgent !== undefined) this.#addUserAgent(headers, this.#userAgent);
      if (this.#via !== '') appendVia(headers, this.#via);
      return peer;
    }
    return this.#applyInGeneral(headers, connection, random, internalOnly, hasForwardedFor);
  }

  #applyInGeneral(
    headers: HeaderBlock,
    connection: EdgeConnection,
    random: Random,
    internalOnly: readonly HeaderKey[],
    hasForwardedFor: boolean,
  ): string {
    const peer = connection.remoteIp;
    let client = peer;
    // Whether the address may make the request internal: only if no other client can have forged it.
    let isSure: boolean;
    if (this.#usesRemoteAddress) {
      isSure = !hasForwardedFor;
      if (this.#trustedHops > 0 && hasForwardedFor) client = forwardedAddress(headers, this.#trustedHops - 1) || peer;
      if (this.#appendsRemote && peer !== '') this.#appendPeer(headers, peer, hasForwardedFor);
      if (this.#trustedHops === 0) headers.removeId(FORWARDED_PROTO.id);
    } else if (this.#detection !== undefined) {
      isSure = this.#detect(this.#detection, headers, peer);
      client = this.#detection.ip || peer;
    } else {
      const forwarded = hasForwardedFor ? forwardedAddress(headers, this.#trustedHops) : '';
      isSure = forwarded !== '' && this.#trustedHops === 0 && isSingle(headers);
      if (forwarded !== '') client = forwarded;
    }
    if (this.#scheme !== undefined) {
      headers.removeId(FORWARDED_PROTO.id);
      headers.scheme = this.#scheme;
    }
    const proto = headers.findValue(FORWARDED_PROTO);
    if (proto < 0) ((this.#scheme ?? connection.scheme) === 'https' ? HTTPS_LINE : HTTP_LINE).addTo(headers);
    else if (headers.scheme === '') headers.scheme = schemeAt(headers, proto) ?? connection.scheme;
    this.#ports?.addTo(headers, connection.localPort);
    const isInternal = isSure && this.#internal?.has(client) === true;
    this.isInternal = isInternal;
    const isEdge = !isInternal && this.#usesRemoteAddress;
    if (isInternal) INTERNAL_LINE.addTo(headers);
    else sanitizeExternal(headers, isEdge, internalOnly);
    this.#reportCertificate(headers, connection);
    if (this.#userAgent !== undefined) this.#addUserAgent(headers, this.#userAgent);
    if (this.#via !== '') appendVia(headers, this.#via);
    if (isEdge && client !== '') {
      headers.removeId(EXTERNAL_ADDRESS.id);
      addAddress(headers, EXTERNAL_ADDRESS, mappedPrefix(this.#ip4Prefix, client), client);
    }
    if (this.#generatesRequestId) this.#ensureRequestId(headers, isEdge, random);
    return client;
  }

  /** Returns whether the detected address may make the request internal. */
  #detect(detection: OriginalIpDetection, headers: HeaderBlock, peer: string): boolean {
    detection.detect(headers, peer, () => {
      if (peer !== '') this.#appendPeer(headers, peer, headers.findId(FORWARDED_FOR.id) >= 0);
    });
    this.refusal = detection.refusal;
    return detection.isTrusted;
  }

  /** Appends the peer to x-forwarded-for, with all former values in one field. */
  #appendPeer(headers: HeaderBlock, peer: string, hasPrevious: boolean): void {
    const ip = isLoopback(peer) ? this.#localIp : peer;
    const prefix = mappedPrefix(this.#ip4Prefix, ip);
    if (!hasPrevious) {
      addAddress(headers, FORWARDED_FOR, prefix, ip);
      return;
    }
    const former = headers.findValue(FORWARDED_FOR);
    const formerLength = headers.valueEnd(former) - headers.valueStart(former);
    const start = beginLine(headers, FORWARDED_FOR, formerLength + 1 + prefix.length + ip.length);
    const { memory } = headers;
    const { bytes } = memory;
    let at = start;
    memory.copy(at, headers.valueStart(former), headers.valueEnd(former));
    at += formerLength;
    headers.removeId(FORWARDED_FOR.id);
    if (at > start) bytes[at++] = COMMA;
    at = writeLatin1(bytes, at, prefix);
    endLine(headers, FORWARDED_FOR, start, writeLatin1(bytes, at, ip));
  }

  #reportCertificate(headers: HeaderBlock, connection: EdgeConnection): void {
    if (this.#certificates === undefined) headers.removeId(CLIENT_CERTIFICATE);
    else this.#certificates.apply(headers, connection.security);
  }

  #addUserAgent(headers: HeaderBlock, line: HeaderLine): void {
    this.#serviceCluster.setIn(headers);
    const index = headers.findId(USER_AGENT.id);
    if (index < 0 || headers.valueStart(index) === headers.valueEnd(index)) line.setIn(headers);
    this.#serviceNode?.setIn(headers);
  }

  #ensureRequestId(headers: HeaderBlock, isEdge: boolean, random: Random): void {
    if (headers.mayHave(REQUEST_ID.id) && headers.findId(REQUEST_ID.id) >= 0) {
      if (!isEdge) return;
      if (this.#preservesRequestId) return this.#packsReason ? clearTraceReason(headers) : undefined;
      headers.removeId(REQUEST_ID.id);
    }
    const at = beginLine(headers, REQUEST_ID, REQUEST_ID_BYTES);
    writeRequestId(headers.memory.bytes, at, random);
    endLine(headers, REQUEST_ID, at, at + REQUEST_ID_BYTES);
  }
}

const FORWARDED_FOR = headerKey('x-forwarded-for');
const FORWARDED_PROTO = headerKey('x-forwarded-proto');
const EXTERNAL_ADDRESS = headerKey('x-envoy-external-address');
const CLIENT_CERTIFICATE = knownHeader('x-forwarded-client-cert');
const REFERER = knownHeader('referer');
const INTERNAL = headerKey('x-envoy-internal');
const REQUEST_ID = headerKey('x-request-id');
const USER_AGENT = headerKey('user-agent');
const VIA = headerKey('via');
const SERVICE_CLUSTER = headerKey('x-envoy-downstream-service-cluster');
const SERVICE_NODE = headerKey('x-envoy-downstream-service-node');

const HTTP_LINE = new HeaderLine(FORWARDED_PROTO, 'http');
const HTTPS_LINE = new HeaderLine(FORWARDED_PROTO, 'https');
const INTERNAL_LINE = new HeaderLine(INTERNAL, 'true');

const EXTENSIONS = 'original_ip_detection_extensions';
const NO_KEYS: readonly HeaderKey[] = [];
const COMMA = 44;

function addAddress(headers: HeaderBlock, key: HeaderKey, prefix: string, ip: string): void {
  const start = beginLine(headers, key, prefix.length + ip.length);
  const { bytes } = headers.memory;
  const at = prefix === '' ? start : writeLatin1(bytes, start, prefix);
  endLine(headers, key, start, writeLatin1(bytes, at, ip));
}

function appendVia(headers: HeaderBlock, via: string): void {
  const former = headers.get(VIA) ?? '';
  headers.set(VIA, former === '' ? via : `${former}, ${via}`);
}

function forwardedFor(headers: HeaderBlock): string {
  return headers.get(FORWARDED_FOR) ?? '';
}

/** Returns the canonical form of the address in x-forwarded-for that `skipped` others follow; '' if there is none. */
function forwardedAddress(headers: HeaderBlock, skipped: number): string {
  const values = forwardedFor(headers).split(',');
  const text = values[values.length - 1 - skipped]?.trim() ?? '';
  // A zone ID that names an interface of another machine has no meaning here.
  if (/%[^0-9]/.test(text)) return '';
  return ipAddress(text, 0)?.ip ?? '';
}

function isSingle(headers: HeaderBlock): boolean {
  return !forwardedFor(headers).includes(',');
}
