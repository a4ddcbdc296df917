// Certificates of workloads (X.509-SVID), verified by the authorities of their trust domain.

import { X509Certificate } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { Authority, type CertificateRequest, type IssuedCertificate } from '../harness/certificates.js';
import { besideEnvoy } from '../harness/envoy.js';
import {
  bootstrap,
  type Config,
  httpListener,
  routeAllTo,
  startBaton,
  staticCluster,
  tempDir,
  waitFor,
} from '../harness/index.js';
import { clientTls, httpsGet, httpsListener, serverTls, startSecureHost, trustedCa } from './contexts.js';
import { MANAGER, startHttps } from './https-proxy.js';

const [one, two] = [await Authority.create('One'), await Authority.create('Two')];
const server = await one.issue({ names: ['server.test', id('one.test/server')], isOfWorkload: true });
const ca = one.certificate;

function id(path: string) {
  return { type: 'url' as const, value: `spiffe://${path}` };
}

function workload(authority: Authority, path: string, more: CertificateRequest = {}): Promise<IssuedCertificate> {
  return authority.issue({ names: [id(path)], isOfWorkload: true, ...more });
}

/** Returns a validation context with the SPIFFE validator. */
function spiffe(config: Config, more: Config = {}): Config {
  const type = 'type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.SPIFFECertValidatorConfig';
  const typed_config = { '@type': type, ...config };
  return { custom_validator_config: { name: 'envoy.tls.cert_validator.spiffe', typed_config }, ...more };
}

function domain(name: string, authority: Authority, revoked = ''): Config {
  return { name, trust_bundle: { inline_string: `${authority.certificate}\n${revoked}` } };
}

const DOMAINS = { trust_domains: [domain('one.test', one), domain('two.test', two)] };

async function isServed(port: number, certificate?: IssuedCertificate): Promise<boolean> {
  const own = certificate && { cert: certificate.chain, key: certificate.key };
  return httpsGet(port, { ca, ...own }).then(
    ({ status }) => status === 200,
    () => false,
  );
}

function bundleMap(authorities: { readonly [name: string]: Authority }): string {
  const entries = Object.entries(authorities).map(([name, { certificate }]) => {
    const x5c = [new X509Certificate(certificate).raw.toString('base64')];
    return [name, { spiffe_sequence: 1, keys: [{ use: 'x509-svid', kty: 'EC', x5c }] }];
  });
  return JSON.stringify({ trust_domains: Object.fromEntries(entries) });
}

besideEnvoy('a workload is verified by the authorities of its own domain, and by no others', async (t, program) => {
  const tls = serverTls([server], { validation_context: spiffe(DOMAINS) });
  const { baton, port, ssl } = await startHttps(t, program, tls);
  const intermediate = await two.issueAuthority('Intermediate');
  for (const [what, certificate, isAccepted] of [
    ['no certificate', undefined, false],
    ['one.test', await workload(one, 'one.test/a'), true],
    ['two.test', await workload(two, 'two.test/b'), true],
    ['two.test by an intermediate authority', await workload(intermediate, 'two.test/c'), true],
    ["a certificate of one domain in another's name", await workload(two, 'one.test/a'), false],
    ['an unknown domain', await workload(one, 'three.test/a'), false],
    ['an ID without a path', await workload(one, 'one.test'), false],
    ['no URI', await one.issue({ names: ['one.test'], isOfWorkload: true }), false],
    [
      'a first URI that is no ID',
      await one.issue({ names: [{ type: 'url', value: 'http://x/' }, id('one.test/a')], isOfWorkload: true }),
      false,
    ],
    ['no key usage', await workload(one, 'one.test/a', { isOfWorkload: false }), false],
    ['an authority', await workload(one, 'one.test/a', { isAuthority: true }), false],
    ['an expired certificate', await workload(one, 'one.test/a', { validDays: [-9, -1] }), false],
  ] as const)
    t.equal(await isServed(port, certificate), isAccepted, what);
  await baton.waitForStats({
    [`${ssl}handshake`]: 3,
    [`${ssl}fail_verify_error`]: 8,
    [`${ssl}fail_verify_no_cert`]: 1,
    [`${ssl}certificate.unnamed_ca_cert_0.expiration_unix_time_seconds`]: Math.floor(+one.x509.notAfter / 1000),
    [`${ssl}certificate.unnamed_ca_cert_1.expiration_unix_time_seconds`]: Math.floor(+two.x509.notAfter / 1000),
  });
});

besideEnvoy('IDs are compared, and expired certificates allowed, as the context says', async (t, program) => {
  const match_typed_subject_alt_names = [{ san_type: 'URI', matcher: { prefix: 'spiffe://one.test/team/' } }];
  const more = { match_typed_subject_alt_names, allow_expired_certificate: true };
  const tls = serverTls([server], { validation_context: spiffe(DOMAINS, more) });
  const { baton, port, ssl } = await startHttps(t, program, tls);
  t.ok(await isServed(port, await workload(one, 'one.test/team/a')));
  t.ok(await isServed(port, await workload(one, 'one.test/team/a', { validDays: [-9, -1] })));
  t.notOk(await isServed(port, await workload(one, 'one.test/other')));
  await baton.waitForStats({ [`${ssl}fail_verify_san`]: 1, [`${ssl}handshake`]: 2 });
});

besideEnvoy('a host is verified by the authorities of its domain', async (t, program) => {
  const hosts = await Promise.all(
    [await workload(one, 'one.test/host'), await workload(two, 'one.test/host')].map((certificate) =>
      startSecureHost(t, certificate, (_, response) => response.end('host')),
    ),
  );
  const transport_socket = clientTls({ validation_context: spiffe(DOMAINS) });
  const names = ['good', 'bad'];
  const baton = await startBaton(t, {
    ...program,
    config: bootstrap({
      listeners: names.map((name) => httpListener(name, 0, { route_config: routeAllTo(name) })),
      clusters: names.map((name, index) => staticCluster(name, hosts[index]!.port, { transport_socket })),
    }),
  });
  const statuses = await Promise.all(
    names.map(async (name) => (await fetch(`http://127.0.0.1:${await baton.listenerPort(name)}/`)).status),
  );
  t.same(statuses, [200, 503]);
  await baton.waitForStats({ 'cluster.bad.ssl.fail_verify_error': 1 });
});

besideEnvoy('a map of trust bundles is read again when its file changes', async (t, program) => {
  const directory = tempDir(t);
  const file = join(directory, 'bundles.json');
  const [a, b] = [await workload(one, 'one.test/a'), await workload(two, 'two.test/b')];
  writeFileSync(file, bundleMap({ 'one.test': one }));
  // The domains are not used, but required by the schema.
  const validation_context = spiffe({ trust_bundles: { filename: file }, trust_domains: DOMAINS.trust_domains });
  const { port } = await startHttps(t, program, serverTls([server], { validation_context }));
  t.same([await isServed(port, a), await isServed(port, b)], [true, false]);
  // In place: Envoy does not see a file that is moved there.
  const replace = (text: string) => writeFileSync(file, text);
  replace(bundleMap({ 'one.test': one, 'two.test': two }));
  await waitFor(() => isServed(port, b), { what: 'the second domain' });
  replace('{"trust_domains": {"one.test": {"keys": []}}}');
  replace(bundleMap({ 'two.test': two }));
  await waitFor(async () => !(await isServed(port, a)), { what: 'the end of the first domain' });
  t.ok(await isServed(port, b));
});

t.test('a domain without a name vouches for no certificate', async (t) => {
  const trust_bundles = { inline_string: bundleMap({ '': one, 'two.test': two }) };
  const validation_context = spiffe({ ...DOMAINS, trust_bundles });
  const { port } = await startHttps(t, {}, serverTls([server], { validation_context }));
  t.notOk(await isServed(port, await one.issue({ names: ['one.test'], isOfWorkload: true })), 'no ID');
  t.notOk(await isServed(port, await workload(one, '/a')), 'an ID without a domain');
  t.ok(await isServed(port, await workload(two, 'two.test/b')));
});

t.test('a revoked workload is refused', async (t) => {
  const [good, revoked] = [await workload(one, 'one.test/a'), await workload(one, 'one.test/b')];
  const config = { trust_domains: [domain('one.test', one, await one.revoke([revoked]))] };
  const { port } = await startHttps(t, {}, serverTls([server], { validation_context: spiffe(config) }));
  t.same([await isServed(port, good), await isServed(port, revoked)], [true, false]);
});

t.test('a session of one set of domains is not resumed with another', async (t) => {
  const names = ['l0', 'l1'];
  const listeners = [DOMAINS, { trust_domains: [domain('two.test', two)] }].map((config, index) =>
    httpsListener(names[index]!, serverTls([server], { validation_context: spiffe(config) }), MANAGER),
  );
  const baton = await startBaton(t, { config: bootstrap({ listeners, clusters: [] }) });
  const own = await workload(one, 'one.test/a');
  const options = { ca, cert: own.chain, key: own.key, maxVersion: 'TLSv1.2' } as const;
  const first = await httpsGet(await baton.listenerPort('l0'), options);
  const session = first.socket.getSession()!;
  t.ok((await httpsGet(await baton.listenerPort('l0'), { ...options, session })).socket.isSessionReused());
  await t.rejects(httpsGet(await baton.listenerPort('l1'), { ...options, session }));
});

t.test('what the validator does not read is refused', async (t) => {
  const refusal = async (validation: Config) => {
    const tls = serverTls([server], { validation_context: validation });
    const config = bootstrap({ listeners: [httpsListener('main', tls, MANAGER)], clusters: [] });
    const process = await startBaton(t, { config, args: ['--mode', 'validate'], wait: 'spawned' });
    await process.exited;
    return process.stderr;
  };
  const twice = { trust_domains: [domain('one.test', one), domain('one.test', two)] };
  for (const [validation, message] of [
    [spiffe(twice), /two trust bundles for the domain 'one.test'/],
    [spiffe({ trust_domains: [{ name: 'one.test' }] }), /'one.test' needs a trust_bundle/],
    [spiffe({ trust_domains: [{ name: 'one.test', trust_bundle: { inline_string: 'x' } }] }), /no certificate/],
    [spiffe({ ...DOMAINS, trust_bundles: { inline_string: '{}' } }), /it has no trust_domains/],
    [
      spiffe({ ...DOMAINS, trust_bundles: { inline_string: '{"trust_domains": {"a": {"keys": [{}]}}}' } }),
      /use is not x509-svid/,
    ],
    [
      spiffe(DOMAINS, { verify_certificate_hash: ['00'.repeat(32)] }),
      /verify_certificate_hash: the SPIFFE validator does not read it/,
    ],
    [
      spiffe(DOMAINS, { match_typed_subject_alt_names: [{ san_type: 'DNS', matcher: { exact: 'a' } }] }),
      /only names of the type URI/,
    ],
    [
      spiffe({ trust_domains: [{ ...domain('one.test', one), workload_trust_domain: 'x' }] }),
      /workload_trust_domain.* is not implemented/,
    ],
    [{ ...trustedCa(one), custom_validator_config: { name: 'acme' } }, /custom_validator_config/],
  ] as const)
    t.match(await refusal(validation), message);
});
