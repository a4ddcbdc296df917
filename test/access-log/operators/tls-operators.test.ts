// The operators about TLS. The expected texts are those of Envoy 1.40 with the same certificates.

import t from 'tap';
import { compileFormat } from '../../../src/access-log/formats/format.js';
import { operatorNames } from '../../../src/access-log/operators/operators.js';
import type { StreamInfo } from '../../../src/access-log/stream/stream-info.js';
import { anonymous, authenticated, nameless } from '../../io/tls/security.js';
import { stream } from '../stream.js';

const CLIENT: Readonly<Record<string, string>> = {
  TLS_VERSION: 'TLSv1.3',
  TLS_CIPHER: 'TLS_AES_128_GCM_SHA256',
  TLS_GROUP: 'X25519',
  TLS_SESSION_ID: '-',
  PEER_SUBJECT:
    'emailAddress=j@x.org,CN=J\\C3\\BCrgen \\"q\\"\\, x\\;y\\\\,OU=\\ #sp\\ ,O=Zwei,O=Acme+OU=dev,ST=Ca/l,C=US',
  PEER_ISSUER: 'CN=Inter \\"x\\",O=Sue\\, Grabbit,C=GB',
  PEER_SERIAL: 'abcdef0123',
  PEER_FINGERPRINT_256: '0b0d0f29a71cd7df105d88dc5e73a7f2351e08ecc458d99d325d519cc23eb554',
  PEER_FINGERPRINT_1: 'bc57b8ae14a43de2b3a10a0160c34c343f58d43b',
  PEER_ISSUER_FINGERPRINT_256: '9081409eb0fffd5d5f843b731b3ec6c4938c2ef55bba13cb7e26b5d2ac0c4ae9',
  PEER_ISSUER_SERIAL: 'ff01',
  PEER_CHAIN_FINGERPRINTS_256:
    '0b0d0f29a71cd7df105d88dc5e73a7f2351e08ecc458d99d325d519cc23eb554,9081409eb0fffd5d5f843b731b3ec6c4938c2ef55bba13cb7e26b5d2ac0c4ae9',
  PEER_CHAIN_FINGERPRINTS_1: 'bc57b8ae14a43de2b3a10a0160c34c343f58d43b,28ec74336a0f687b8ff85ef15194745e014adf66',
  PEER_CHAIN_SERIALS: 'abcdef0123,ff01',
  PEER_URI_SAN: 'spiffe://x/y;z,http://u2/a%20b',
  PEER_DNS_SAN: 'a.example.com,*.b.example.com',
  PEER_IP_SAN: '10.1.2.3,fd00::1:2',
  PEER_EMAIL_SAN: 'a@b.org',
  PEER_OTHERNAME_SAN: 'upn@x,-255',
  PEER_CERT: authenticated.peer!.urlEncodedPem,
  PEER_CERT_V_START: '2026-11-29T23:33:27.000Z',
  PEER_CERT_V_END: '2026-12-09T23:33:27.000Z',
  'PEER_CERT_V_START(%Y)': '2026',
  'PEER_CERT_V_END(%s)': '1796859207',
  LOCAL_SUBJECT: 'CN=srv,O=Srv',
  LOCAL_URI_SAN: 'spiffe://srv/one,spiffe://srv/two',
  LOCAL_DNS_SAN: 'srv.example.com',
  LOCAL_IP_SAN: '127.0.0.1',
  LOCAL_EMAIL_SAN: 's@x.org',
  LOCAL_OTHERNAME_SAN: 'oth',
};

/** What Envoy has about hosts. */
const HOST_NAMES = [
  ...['TLS_VERSION', 'TLS_CIPHER', 'TLS_GROUP', 'TLS_SESSION_ID', 'PEER_SUBJECT', 'PEER_ISSUER'],
  ...['PEER_URI_SAN', 'PEER_DNS_SAN', 'PEER_IP_SAN', 'PEER_CERT', 'PEER_CERT_V_START', 'PEER_CERT_V_END'],
  ...['PEER_CERT_V_START(%Y)', 'PEER_CERT_V_END(%s)', 'LOCAL_URI_SAN', 'LOCAL_DNS_SAN', 'LOCAL_IP_SAN'],
];

const print = (operator: string, info: StreamInfo) => compileFormat(`%${operator}%`).text(info);
const withClient = (security: typeof anonymous | undefined) =>
  stream({ downstream: { ...stream().downstream!, security } });

t.test('the client: what the handshake has established, and its certificate', async (t) => {
  const info = withClient(authenticated);
  for (const [name, expected] of Object.entries(CLIENT)) t.equal(print(`DOWNSTREAM_${name}`, info), expected, name);
  const session = withClient({ ...anonymous, sessionId: '9904251f' });
  t.equal(print('DOWNSTREAM_TLS_SESSION_ID', session), '9904251f');
});

t.test('a client without a certificate has only a session; a plain one has nothing', async (t) => {
  for (const [name, expected] of Object.entries(CLIENT)) {
    t.equal(print(`DOWNSTREAM_${name}`, withClient(anonymous)), name.startsWith('PEER') ? '-' : expected, name);
    t.equal(print(`DOWNSTREAM_${name}`, withClient(undefined)), '-', name);
  }
  t.equal(print('DOWNSTREAM_PEER_URI_SAN', withClient(nameless)), '-');
  t.equal(print('DOWNSTREAM_PEER_ISSUER_SERIAL', withClient(nameless)), '-');
});

t.test('the host: fewer operators, as in Envoy', async (t) => {
  const info = stream({ upstreamSecurity: authenticated });
  for (const name of HOST_NAMES) {
    t.equal(print(`UPSTREAM_${name}`, info), CLIENT[name], name);
    t.equal(print(`UPSTREAM_${name}`, stream()), '-', name);
  }
  t.equal(print('UPSTREAM_SERVER_NAME', info), 'srv.example.com');
  const names = [...operatorNames()].filter((name) => /^UPSTREAM_(?:TLS|PEER|LOCAL_.*(?:SAN|SUBJECT))/.test(name));
  t.same(names.sort(), [...new Set(HOST_NAMES.map((name) => `UPSTREAM_${name.replace(/\(.*/, '')}`))].sort());
});
