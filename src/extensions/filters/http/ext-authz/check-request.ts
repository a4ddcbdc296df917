// The question to a gRPC service (envoy.service.auth.v3.CheckRequest).

import {
  writeAddress,
  writeMapMessage,
  writeMapText,
  writeStruct,
  writeText,
  writeTimestamp,
} from '../../../messages/wire.js';
import {
  type CertificateFacts,
  type ConnectionSecurity,
  type HeaderBlock,
  headerKey,
  PROTOCOL_NAMES,
  ProtobufWriter,
  requestScheme,
  type StreamInfo,
} from '../../../sdk.js';
import type { NameRules } from './name-rules.js';

const PARTIAL_BODY = 'x-envoy-auth-partial-body';
const SERVICE = headerKey('x-envoy-downstream-service-cluster');
const HOST = headerKey('host');
/** Fields of one connection, which the service does not get. */
const UNSENT = new Set([PARTIAL_BODY, 'connection', 'keep-alive', 'proxy-connection', 'transfer-encoding', 'upgrade']);

/** What the service is told about a request. */
export interface CheckRules {
  /** Fields of the request that the service gets; undefined: all. */
  readonly sent: NameRules | undefined;
  readonly notSent: NameRules | undefined;
  readonly includesCertificate: boolean;
  readonly includesTlsSession: boolean;
  /** Namespaces of dynamic metadata. */
  readonly namespaces: readonly string[];
}

/** A request that is to be checked. */
export interface CheckedRequest {
  readonly info: StreamInfo;
  readonly head: HeaderBlock;
  /** Of the configuration of the route. */
  readonly extensions: ReadonlyMap<string, string>;
}

const message = new ProtobufWriter();
const attributes = new ProtobufWriter();
const part = new ProtobufWriter();
const http = new ProtobufWriter();
const entry = new ProtobufWriter();

let lastId = 0;

/** Returns the encoded question. */
export function encodeCheck(rules: CheckRules, { extensions, head, info }: CheckedRequest): Uint8Array {
  const security = info.downstreamSecurity;
  attributes.clear();
  writePeer(1, info.downstreamRemoteAddress, security?.peer, rules, head.get(SERVICE) ?? '');
  writePeer(2, info.downstreamLocalAddress, security?.local, NO_CERTIFICATE, '');
  writeRequest(rules, head, info);
  for (const [key, value] of extensions) writeMapText(attributes, 10, key, value);
  writeMetadata(rules.namespaces, info);
  if (rules.includesTlsSession && security !== undefined) writeSession(info, security);
  part.clear();
  attributes.message(13, part);
  message.clear();
  message.message(1, attributes);
  return message.copy();
}

const NO_CERTIFICATE = { includesCertificate: false };

function writePeer(
  field: number,
  address: string,
  certificate: CertificateFacts | undefined,
  { includesCertificate }: Pick<CheckRules, 'includesCertificate'>,
  service: string,
): void {
  part.clear();
  writeAddress(part, 1, address);
  writeText(part, 2, service);
  if (certificate !== undefined) {
    const principal = certificate.uriSans[0] ?? certificate.dnsSans[0] ?? certificate.subject;
    if (principal !== '') part.string(4, principal);
    if (includesCertificate) part.string(5, certificate.urlEncodedPem);
  }
  attributes.message(field, part);
}

function writeRequest(rules: CheckRules, head: HeaderBlock, info: StreamInfo): void {
  const scheme = requestScheme(head);
  const path = head.pathText();
  http.clear();
  // Unique among the requests of this worker.
  http.string(1, String(++lastId));
  http.string(2, head.methodText());
  for (const [name, value] of fieldsOf(rules, head, scheme, path)) writeMapText(http, 3, name, value);
  writeText(http, 4, path);
  writeText(http, 5, head.get(HOST) ?? '');
  writeText(http, 6, scheme);
  writeText(http, 10, PROTOCOL_NAMES[info.protocol]!);
  part.clear();
  writeTimestamp(part, 1, info.startRealtimeMs);
  part.message(2, http);
  attributes.message(4, part);
}

/** Returns the values by lower-case names. Those of one name are joined by commas as in Envoy, and cookies so that each is kept. */
function fieldsOf(rules: CheckRules, head: HeaderBlock, scheme: string, path: string): ReadonlyMap<string, string> {
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

function writeMetadata(namespaces: readonly string[], { dynamicMetadata }: StreamInfo): void {
  part.clear();
  for (const namespace of namespaces) {
    const struct = dynamicMetadata?.get(namespace);
    if (struct === undefined) continue;
    entry.clear();
    writeStruct(entry, 2, struct);
    writeMapMessage(part, 1, namespace, entry);
  }
  attributes.message(11, part);
}

function writeSession({ downstream }: StreamInfo, { serverName }: ConnectionSecurity): void {
  part.clear();
  writeText(part, 1, downstream?.detected?.serverName || serverName);
  attributes.message(12, part);
}
