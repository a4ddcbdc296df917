// x-forwarded-client-cert in all modes. The expected values are those of Envoy 1.40 with the same certificates.

import t from 'tap';
import { Random } from '../../../../src/common/random.js';
import type { HttpConnectionManager } from '../../../../src/config/generated/api.js';
import { ForwardingRules } from '../../../../src/http/headers/edge/forwarding-headers.js';
import type { ConnectionSecurity } from '../../../../src/io/tls/connection-security.js';
import { anonymous, authenticated, nameless } from '../../../io/tls/security.js';
import { requestHead, valuesOf } from '../../routing/heads.js';

const random = new Random(1);
const LOCAL = { ip: '192.0.2.1', cluster: '', node: '', zone: '' };
const NAME = 'x-forwarded-client-cert';
const SENT = 'By=a;Hash=b';
const HASH = '0b0d0f29a71cd7df105d88dc5e73a7f2351e08ecc458d99d325d519cc23eb554';
const MINIMAL_HASH = '328d99a598792bfc92dc9ce69a2766c9455d94d6866d359323c666cb067ba57c';
const BY = 'By=spiffe://srv/one;By=spiffe://srv/two';
const SUBJECT =
  'emailAddress=j@x.org,CN=J\\C3\\BCrgen \\"q\\"\\, x\\;y\\\\,OU=\\ #sp\\ ,O=Zwei,O=Acme+OU=dev,ST=Ca/l,C=US';
const ISSUER = 'CN=Inter \\"x\\",O=Sue\\, Grabbit,C=GB';
const URIS = 'URI=spiffe://x/y;z;URI=http://u2/a%20b';
const DNS = 'DNS=a.example.com;DNS=*.b.example.com';

type Mode = NonNullable<HttpConnectionManager['forward_client_cert_details']>;
type Details = NonNullable<HttpConnectionManager['set_current_client_cert_details']>;

/** Returns the header's values behind Baton. */
function after(
  mode: Mode | undefined,
  set_current_client_cert_details: Details,
  security: ConnectionSecurity | undefined,
  sent: readonly string[] = [],
  more: HttpConnectionManager = {},
): string[] {
  const head = requestHead('GET /', 'Host: a', ...sent.map((value) => `${NAME}: ${value}`));
  const config = { ...(mode && { forward_client_cert_details: mode }), set_current_client_cert_details, ...more };
  const connection = {
    remoteIp: '203.0.113.7',
    scheme: security ? ('https' as const) : ('http' as const),
    security,
    localPort: '443',
  };
  new ForwardingRules(config, LOCAL).apply(head, connection, random);
  return valuesOf(head, NAME);
}

const MODES: readonly Mode[] = ['SANITIZE', 'FORWARD_ONLY', 'APPEND_FORWARD', 'SANITIZE_SET', 'ALWAYS_FORWARD_ONLY'];
const NAMES: Details = { subject: true, uri: true, dns: true };

t.test('without a client certificate the header is removed, unless it is always forwarded', async (t) => {
  for (const security of [undefined, anonymous]) {
    for (const mode of MODES) {
      const expected = mode === 'ALWAYS_FORWARD_ONLY' ? [SENT] : [];
      t.same(after(mode, NAMES, security, [SENT]), expected, mode);
      t.same(after(mode, NAMES, security, [SENT], { use_remote_address: true }), expected, `${mode} at the edge`);
      t.same(after(mode, NAMES, security), [], mode);
    }
    t.same(after(undefined, {}, security, [SENT]), [], 'the default');
  }
});

t.test('with a client certificate each mode removes, forwards, appends or sets the header', async (t) => {
  const own = `${BY};Hash=${HASH};Subject="${SUBJECT}";${URIS};${DNS}`;
  for (const [sent, appended] of [
    [[], own],
    [[SENT], `${SENT},${own}`],
    [[SENT, 'second'], `${SENT},second,${own}`],
  ] as const) {
    t.same(after('SANITIZE', NAMES, authenticated, sent), []);
    t.same(after('FORWARD_ONLY', NAMES, authenticated, sent), sent);
    t.same(after('ALWAYS_FORWARD_ONLY', NAMES, authenticated, sent), sent);
    t.same(after('APPEND_FORWARD', NAMES, authenticated, sent), [appended]);
    t.same(after('SANITIZE_SET', NAMES, authenticated, sent), [own]);
    t.same(after('SANITIZE_SET', NAMES, authenticated, sent, { use_remote_address: true }), [own], 'at the edge');
  }
});

t.test('set_current_client_cert_details selects the parts', async (t) => {
  const value = (details: Details, security = authenticated) => after('SANITIZE_SET', details, security)[0];
  const start = `${BY};Hash=${HASH}`;
  t.equal(value({}), start);
  t.equal(value({ subject: true }), `${start};Subject="${SUBJECT}"`);
  t.equal(value({ issuer: true }), `${start};Issuer="${ISSUER}"`);
  t.equal(value({ uri: true }), `${start};${URIS}`);
  t.equal(value({ dns: true }), `${start};${DNS}`);
  const [peer, issuer] = authenticated.peerChain.map(({ urlEncodedPem }) => urlEncodedPem);
  t.equal(value({ cert: true }), `${start};Cert="${peer}"`);
  t.equal(value({ chain: true }), `${start};Chain="${peer}${issuer}"`);
  const all = { subject: true, cert: true, chain: true, dns: true, uri: true, issuer: true };
  const names = `Subject="${SUBJECT}";${URIS};${DNS};Issuer="${ISSUER}"`;
  t.equal(value(all), `${start};Cert="${peer}";Chain="${peer}${issuer}";${names}`);
  t.equal(
    value({ subject: true, uri: true, dns: true, issuer: true }, nameless),
    `${BY};Hash=${MINIMAL_HASH};Subject="O=OnlyOrg";URI=;Issuer="CN=root"`,
  );
  t.equal(value({ uri: true }, { ...authenticated, local: undefined }), `Hash=${HASH};${URIS}`);
});

t.test('format JSON', async (t) => {
  const parsed = (details: Details, security = authenticated): unknown =>
    JSON.parse(after('SANITIZE_SET', { ...details, format: 'JSON' }, security)[0]!);
  const start = { by: ['spiffe://srv/one', 'spiffe://srv/two'], hash: HASH };
  t.same(parsed({}), [start]);
  t.same(parsed({ subject: true, cert: true, chain: true, dns: true, uri: true, issuer: true }), [
    {
      ...start,
      cert: authenticated.peer!.pem,
      chain: authenticated.peerChain.map(({ pem }) => pem),
      subject: SUBJECT,
      uri: ['spiffe://x/y;z', 'http://u2/a%20b'],
      dns: ['a.example.com', '*.b.example.com'],
      issuer: ISSUER,
    },
  ]);
  t.same(parsed({ uri: true, dns: true }, nameless), [{ ...start, hash: MINIMAL_HASH }]);
});

t.test('a header in JSON is continued in JSON, and text as text', async (t) => {
  const text = `${BY};Hash=${HASH}`;
  const json = `{"by":["spiffe://srv/one","spiffe://srv/two"],"hash":"${HASH}"}`;
  for (const format of ['TEXT', 'JSON'] as const) {
    const behind = (sent: string) => after('APPEND_FORWARD', { format }, authenticated, [sent])[0];
    t.equal(behind('[{"by":["a"]}]'), `[{"by":["a"]},${json}]`);
    t.equal(behind('[ { "b" : 1.50 } ]'), `[ { "b" : 1.50 } ,${json}]`);
    t.equal(behind('[{"by":["a"]}'), `[{"by":["a"]},${text}`);
    t.equal(behind('[]x'), `[]x,${text}`);
    t.equal(behind('['), `[,${text}`);
    t.equal(behind(SENT), `${SENT},${text}`);
    // Envoy writes a comma after the bracket, which is not JSON.
    t.equal(behind('[]'), `[${json}]`);
    t.equal(behind(''), format === 'JSON' ? `[${json}]` : text);
  }
});
