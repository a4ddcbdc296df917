// Encodes the request to a gRPC authorization service (envoy.service.auth.v3.CheckRequest).

import type { Metadata } from '../../../../config/generated/api.js';
import {
  writeAddress,
  writeBytesAsText,
  writeMapMessage,
  writeMapText,
  writeNumber,
  writeStruct,
  writeText,
  writeTimestamp,
} from '../../../messages/wire.js';
import {
  byteText,
  type CertificateFacts,
  type ConnectionSecurity,
  configuredMetadata,
  type FilteredClient,
  type HeaderBlock,
  headerKey,
  type Json,
  type MetadataSource,
  PROTOCOL_NAMES,
  ProtobufWriter,
  requestScheme,
  type StreamInfo,
} from '../../../sdk.js';
import type { NameRules } from './name-rules.js';
import type { RequestBody } from './request-body.js';

const PARTIAL_BODY = 'x-envoy-auth-partial-body';
const SERVICE = headerKey('x-envoy-downstream-service-cluster');
const HOST = headerKey('host');
/** Headers that are not passed to the service: those of one connection, and one that the filter sets itself. */
const UNSENT = new Set([PARTIAL_BODY, 'connection', 'keep-alive', 'proxy-connection', 'transfer-encoding', 'upgrade']);

/** Selects what the service receives about a request. */
export interface CheckRules {
  /** Headers of the request that the service receives; undefined: all. */
  readonly sent: NameRules | undefined;
  readonly notSent: NameRules | undefined;
  readonly includesCertificate: boolean;
  readonly includesTlsSession: boolean;
  /** Namespaces of the dynamic metadata and of the route's metadata that the service receives. */
  readonly namespaces: readonly string[];
  readonly routeNamespaces: readonly string[];
  /** Headers are sent as a list, with values in bytes. */
  readonly sendsRawFields: boolean;
  /** Labels of this server, as the destination. */
  readonly labels: ReadonlyMap<string, string>;
}

/** A request that is to be checked. */
export interface CheckedRequest {
  readonly info: StreamInfo;
  readonly head: HeaderBlock;
  /** context_extensions of the route. */
  readonly extensions: ReadonlyMap<string, string>;
  readonly routeMetadata: Metadata | undefined;
  readonly body: RequestBody | undefined;
}

const message = new ProtobufWriter();
const attributes = new ProtobufWriter();
const part = new ProtobufWriter();
const http = new ProtobufWriter();
const entry = new ProtobufWriter();

let lastId = 0;

/** Returns the encoded CheckRequest for an HTTP request. */
export function encodeCheck(rules: CheckRules, request: CheckedRequest): Uint8Array {
  const { extensions, head, info, routeMetadata } = request;
  const security = info.downstreamSecurity;
  attributes.clear();
  writePeer(1, info.downstreamRemoteAddress, security?.peer, rules, head.get(SERVICE) ?? '', NO_LABELS);
  writePeer(2, info.downstreamLocalAddress, security?.local, NO_CERTIFICATE, '', rules.labels);
  writeRequest(rules, request);
  for (const [key, value] of extensions) writeMapText(attributes, 10, key, value);
  writeMetadata(rules, info);
  if (rules.includesTlsSession && security !== undefined) writeSession(info, security);
  part.clear();
  writeStructs(rules.routeNamespaces, configuredMetadata(routeMetadata));
  attributes.message(13, part);
  message.clear();
  message.message(1, attributes);
  return message.copy();
}

/** Selects what the service receives about a connection. */
export type ConnectionCheckRules = Pick<
  CheckRules,
  'includesCertificate' | 'includesTlsSession' | 'namespaces' | 'labels'
>;

/** Returns the encoded CheckRequest for a connection. */
export function encodeConnectionCheck(rules: ConnectionCheckRules, client: FilteredClient): Uint8Array {
  const { security } = client;
  attributes.clear();
  writePeer(1, client.remoteText, security?.peer, rules, '', NO_LABELS);
  writePeer(2, client.localText, security?.local, NO_CERTIFICATE, '', rules.labels);
  part.clear();
  writeStructs(rules.namespaces, client.dynamicMetadata);
  attributes.message(11, part);
  if (rules.includesTlsSession) {
    part.clear();
    writeText(part, 1, client.detected?.serverName || security?.serverName || '');
    attributes.message(12, part);
  }
  message.clear();
  message.message(1, attributes);
  return message.copy();
}

/** Returns labels of the node's metadata. As in Envoy, values that are not strings are empty. */
export function labelsOf(value: Json | undefined): ReadonlyMap<string, string> {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return new Map();
  return new Map(Object.entries(value).map(([key, label]) => [key, typeof label === 'string' ? byteText(label) : '']));
}

const NO_CERTIFICATE = { includesCertificate: false };
const NO_LABELS: ReadonlyMap<string, string> = new Map();

function writePeer(
  field: number,
  address: string,
  certificate: CertificateFacts | undefined,
  { includesCertificate }: Pick<CheckRules, 'includesCertificate'>,
  service: string,
  labels: ReadonlyMap<string, string>,
): void {
  part.clear();
  writeAddress(part, 1, address);
  writeText(part, 2, service);
  for (const [key, value] of labels) writeMapText(part, 3, key, value);
  if (certificate !== undefined) {
    const principal = certificate.uriSans[0] ?? certificate.dnsSans[0] ?? certificate.subject;
    if (principal !== '') part.string(4, principal);
    if (includesCertificate) part.string(5, certificate.urlEncodedPem);
  }
  attributes.message(field, part);
}

function writeRequest(rules: CheckRules, { body, head, info }: CheckedRequest): void {
  const scheme = requestScheme(head);
  const path = head.pathText();
  http.clear();
  // Unique among the requests of this worker.
  http.string(1, String(++lastId));
  http.string(2, head.methodText());
  const fields = fieldsOf(rules, head, scheme, path);
  if (body !== undefined) fields.set(PARTIAL_BODY, String(body.isPartial));
  if (rules.sendsRawFields) writeRawFields(fields);
  else for (const [name, value] of fields) writeMapText(http, 3, name, value);
  writeText(http, 4, path);
  writeText(http, 5, head.get(HOST) ?? '');
  writeText(http, 6, scheme);
  writeNumber(http, 9, info.bytesReceived);
  writeText(http, 10, PROTOCOL_NAMES[info.protocol]!);
  if (body?.isBinary === false) writeBytesAsText(http, 11, body.bytes);
  else if (body !== undefined && body.bytes.length > 0) http.bytes(12, body.bytes);
  part.clear();
  writeTimestamp(part, 1, info.startRealtimeMs);
  part.message(2, http);
  attributes.message(4, part);
}

/** Returns the values by lower-case name. As in Envoy, repeated headers are joined by commas, and cookies by semicolons. */
function fieldsOf(rules: CheckRules, head: HeaderBlock, scheme: string, path: string): Map<string, string> {
  const fields = new Map<string, string>();
  const add = (name: string, value: string) => {
    if (UNSENT.has(name) || rules.notSent?.takeName(name) === true || rules.sent?.takeName(name) === false) return;
    const former = fields.get(name);
    fields.set(name, former === undefined ? value : `${former}${name === 'cookie' ? '; ' : ','}${value}`);
  };
  add(':method', head.methodText());
  add(':path', path);
  add(':scheme', scheme);
  for (let index = 0; index < head.size; index++) {
    if (head.isRemoved(index)) continue;
    const name = head.name(index);
    add(name === 'host' ? ':authority' : name, head.value(index));
  }
  return fields;
}

/** Writes the fields as envoy.config.core.v3.HeaderMap: values are bytes. */
function writeRawFields(fields: ReadonlyMap<string, string>): void {
  part.clear();
  for (const [name, value] of fields) {
    entry.clear();
    entry.string(1, name);
    entry.bytes(3, Buffer.from(value, 'latin1'));
    part.message(1, entry);
  }
  http.message(13, part);
}

/** As in Envoy, the metadata of the connection stands in for namespaces that the request lacks. */
function writeMetadata({ namespaces }: CheckRules, { downstream, dynamicMetadata }: StreamInfo): void {
  const ofConnection = downstream?.dynamicMetadata;
  part.clear();
  writeStructs(namespaces, {
    get: (namespace) => dynamicMetadata?.get(namespace) ?? ofConnection?.get(namespace),
  });
  attributes.message(11, part);
}

/** Writes structures as envoy.config.core.v3.Metadata.filter_metadata. */
function writeStructs(namespaces: readonly string[], source: MetadataSource | undefined): void {
  for (const namespace of namespaces) {
    const struct = source?.get(namespace);
    if (struct === undefined) continue;
    entry.clear();
    writeStruct(entry, 2, struct);
    writeMapMessage(part, 1, namespace, entry);
  }
}

function writeSession({ downstream }: StreamInfo, { serverName }: ConnectionSecurity): void {
  part.clear();
  writeText(part, 1, downstream?.detected?.serverName || serverName);
  attributes.message(12, part);
}
