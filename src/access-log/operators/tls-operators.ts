// The operators about TLS: what a listener filter has detected, and what the handshakes with the client and the host have
// established.

import type { CertificateFacts, ConnectionSecurity } from '../../io/tls/connection-security.js';
import type { LogBuffer } from '../log-buffer.js';
import type { StreamInfo } from '../stream/stream-info.js';
import { type Entry, text, time, withParameter } from './entries.js';
import type { Operator } from './operator.js';

type SecurityOf = (info: StreamInfo) => ConnectionSecurity | undefined;
/** Returns a text of a certificate; '' if it has none. */
type CertificateText = (certificate: CertificateFacts) => string;

const downstream: SecurityOf = (info) => info.downstreamSecurity;
const upstream: SecurityOf = (info) => info.upstreamSecurity;

/** As in Envoy, fewer operators are about hosts than about clients. */
export const TLS_OPERATORS: readonly (readonly [name: string, entry: Entry])[] = [
  ['TLS_JA3_FINGERPRINT', text((info) => info.downstream?.detected?.ja3 ?? '')],
  ['TLS_JA4_FINGERPRINT', text((info) => info.downstream?.detected?.ja4 ?? '')],
  ...session('DOWNSTREAM', downstream),
  ['DOWNSTREAM_PEER_SUBJECT', peer(downstream, ({ subject }) => subject)],
  ['DOWNSTREAM_PEER_ISSUER', peer(downstream, ({ issuer }) => issuer)],
  ['DOWNSTREAM_PEER_SERIAL', peer(downstream, ({ serial }) => serial)],
  ['DOWNSTREAM_PEER_FINGERPRINT_256', peer(downstream, ({ sha256 }) => sha256)],
  ['DOWNSTREAM_PEER_FINGERPRINT_1', peer(downstream, ({ sha1 }) => sha1)],
  ['DOWNSTREAM_PEER_ISSUER_FINGERPRINT_256', text((info) => downstream(info)?.peerIssuer?.sha256 ?? '')],
  ['DOWNSTREAM_PEER_ISSUER_SERIAL', text((info) => downstream(info)?.peerIssuer?.serial ?? '')],
  ['DOWNSTREAM_PEER_CHAIN_FINGERPRINTS_256', chain(({ sha256 }) => sha256)],
  ['DOWNSTREAM_PEER_CHAIN_FINGERPRINTS_1', chain(({ sha1 }) => sha1)],
  ['DOWNSTREAM_PEER_CHAIN_SERIALS', chain(({ serial }) => serial)],
  ['DOWNSTREAM_PEER_EMAIL_SAN', peer(downstream, ({ emailSans }) => emailSans.join())],
  ['DOWNSTREAM_PEER_OTHERNAME_SAN', peer(downstream, ({ otherNameSans }) => otherNameSans.join())],
  ...peerOfEither('DOWNSTREAM', downstream),
  ['DOWNSTREAM_LOCAL_SUBJECT', local(downstream, ({ subject }) => subject)],
  ['DOWNSTREAM_LOCAL_EMAIL_SAN', local(downstream, ({ emailSans }) => emailSans.join())],
  ['DOWNSTREAM_LOCAL_OTHERNAME_SAN', local(downstream, ({ otherNameSans }) => otherNameSans.join())],
  ...localOfEither('DOWNSTREAM', downstream),
  ...session('UPSTREAM', upstream),
  ['UPSTREAM_SERVER_NAME', text((info) => upstream(info)?.serverName ?? '')],
  ['UPSTREAM_PEER_SUBJECT', peer(upstream, ({ subject }) => subject)],
  ['UPSTREAM_PEER_ISSUER', peer(upstream, ({ issuer }) => issuer)],
  ...peerOfEither('UPSTREAM', upstream),
  ...localOfEither('UPSTREAM', upstream),
];

function session(side: string, of: SecurityOf): [string, Entry][] {
  return [
    [`${side}_TLS_VERSION`, text((info) => of(info)?.version ?? '')],
    [`${side}_TLS_CIPHER`, text((info) => of(info)?.cipher ?? '')],
    [`${side}_TLS_GROUP`, text((info) => of(info)?.group ?? '')],
    [`${side}_TLS_SESSION_ID`, text((info) => of(info)?.sessionId ?? '')],
  ];
}

function peerOfEither(side: string, of: SecurityOf): [string, Entry][] {
  return [
    [`${side}_PEER_URI_SAN`, peer(of, ({ uriSans }) => uriSans.join())],
    [`${side}_PEER_DNS_SAN`, peer(of, ({ dnsSans }) => dnsSans.join())],
    [`${side}_PEER_IP_SAN`, peer(of, ({ ipSans }) => ipSans.join())],
    [`${side}_PEER_CERT`, peer(of, ({ urlEncodedPem }) => urlEncodedPem)],
    [`${side}_PEER_CERT_V_START`, peerTime(of, ({ validFromMs }) => validFromMs)],
    [`${side}_PEER_CERT_V_END`, peerTime(of, ({ validUntilMs }) => validUntilMs)],
  ];
}

function localOfEither(side: string, of: SecurityOf): [string, Entry][] {
  return [
    [`${side}_LOCAL_URI_SAN`, local(of, ({ uriSans }) => uriSans.join())],
    [`${side}_LOCAL_DNS_SAN`, local(of, ({ dnsSans }) => dnsSans.join())],
    [`${side}_LOCAL_IP_SAN`, local(of, ({ ipSans }) => ipSans.join())],
  ];
}

function peer(of: SecurityOf, get: CertificateText): Entry {
  return text((info) => certificateText(of(info)?.peer, get));
}

function local(of: SecurityOf, get: CertificateText): Entry {
  return text((info) => certificateText(of(info)?.local, get));
}

function certificateText(certificate: CertificateFacts | undefined, get: CertificateText): string {
  return certificate === undefined ? '' : get(certificate);
}

function chain(get: CertificateText): Entry {
  return text((info) => downstream(info)?.peerChain.map(get).join() ?? '');
}

function peerTime(of: SecurityOf, get: (certificate: CertificateFacts) => number): Entry {
  const entry = time((info) => get(of(info)!.peer!), 'utc');
  return withParameter(
    'optional',
    false,
    (call, needs) => new OfPeer((info) => of(info)?.peer !== undefined, entry.create(call, needs)),
  );
}

/** Writes nothing without a certificate. */
class OfPeer implements Operator {
  readonly isNumber = false;
  readonly #hasPeer: (info: StreamInfo) => boolean;
  readonly #operator: Operator;

  constructor(hasPeer: (info: StreamInfo) => boolean, operator: Operator) {
    this.#hasPeer = hasPeer;
    this.#operator = operator;
  }

  write(info: StreamInfo, out: LogBuffer): boolean {
    return this.#hasPeer(info) && this.#operator.write(info, out);
  }
}
