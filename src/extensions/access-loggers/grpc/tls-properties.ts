// The part of a log entry about TLS with the client (envoy.data.accesslog.v3.TLSProperties).

import { writeText, writeWrapped } from '../../messages/wire.js';
import { type CertificateFacts, ProtobufWriter, type StreamInfo } from '../../sdk.js';

/** Values of TLSVersion. */
const VERSIONS = { TLSv1: 1, 'TLSv1.1': 2, 'TLSv1.2': 3, 'TLSv1.3': 4 } as const;

/** Numbers of cipher suites by OpenSSL's names (https://www.iana.org/assignments/tls-parameters). */
const CIPHERS: ReadonlyMap<string, number> = new Map([
  ['TLS_AES_128_GCM_SHA256', 0x1301],
  ['TLS_AES_256_GCM_SHA384', 0x1302],
  ['TLS_CHACHA20_POLY1305_SHA256', 0x1303],
  ['ECDHE-ECDSA-AES128-GCM-SHA256', 0xc02b],
  ['ECDHE-ECDSA-AES256-GCM-SHA384', 0xc02c],
  ['ECDHE-RSA-AES128-GCM-SHA256', 0xc02f],
  ['ECDHE-RSA-AES256-GCM-SHA384', 0xc030],
  ['ECDHE-RSA-CHACHA20-POLY1305', 0xcca8],
  ['ECDHE-ECDSA-CHACHA20-POLY1305', 0xcca9],
  ['ECDHE-PSK-CHACHA20-POLY1305', 0xccac],
  ['ECDHE-ECDSA-AES128-SHA', 0xc009],
  ['ECDHE-ECDSA-AES256-SHA', 0xc00a],
  ['ECDHE-RSA-AES128-SHA', 0xc013],
  ['ECDHE-RSA-AES256-SHA', 0xc014],
  ['ECDHE-ECDSA-AES128-SHA256', 0xc023],
  ['ECDHE-ECDSA-AES256-SHA384', 0xc024],
  ['ECDHE-RSA-AES128-SHA256', 0xc027],
  ['ECDHE-RSA-AES256-SHA384', 0xc028],
  ['ECDHE-PSK-AES128-CBC-SHA', 0xc035],
  ['ECDHE-PSK-AES256-CBC-SHA', 0xc036],
  ['DHE-RSA-AES128-GCM-SHA256', 0x009e],
  ['DHE-RSA-AES256-GCM-SHA384', 0x009f],
  ['DHE-RSA-CHACHA20-POLY1305', 0xccaa],
  ['AES128-GCM-SHA256', 0x009c],
  ['AES256-GCM-SHA384', 0x009d],
  ['AES128-SHA', 0x002f],
  ['AES256-SHA', 0x0035],
  ['AES128-SHA256', 0x003c],
  ['AES256-SHA256', 0x003d],
  ['DES-CBC3-SHA', 0x000a],
]);

const properties = new ProtobufWriter();
const certificate = new ProtobufWriter();
const name = new ProtobufWriter();

/** Writes the properties of a connection with TLS. */
export function writeTlsProperties(to: ProtobufWriter, field: number, info: StreamInfo): void {
  const { downstreamSecurity: security } = info;
  if (security === undefined) return;
  properties.clear();
  properties.number(1, VERSIONS[security.version]);
  const cipher = CIPHERS.get(security.cipher);
  if (cipher !== undefined) writeWrapped(properties, 2, cipher);
  // As in Envoy, a listener filter must have detected it.
  writeText(properties, 3, info.downstream?.detected?.serverName ?? '');
  writeCertificate(4, security.local, false);
  writeCertificate(5, security.peer, true);
  writeText(properties, 6, security.sessionId);
  writeText(properties, 7, info.downstream?.detected?.ja3 ?? '');
  to.message(field, properties);
}

/** As in Envoy, the names are only those that are URIs, and the message is there without a certificate, too. */
function writeCertificate(field: number, facts: CertificateFacts | undefined, hasIssuer: boolean): void {
  certificate.clear();
  if (facts !== undefined) {
    for (const uri of facts.uriSans) {
      name.clear();
      name.string(1, uri);
      certificate.message(1, name);
    }
    if (facts.subject !== '') certificate.string(2, facts.subject);
    if (hasIssuer && facts.issuer !== '') certificate.string(3, facts.issuer);
  }
  properties.message(field, certificate);
}
