// TLS secrets from resource files (SDS), and from the files that they name.

import { randomBytes } from 'node:crypto';
import { mkdirSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { Authority } from '../harness/certificates.js';
import { besideEnvoy, type ProxyProgram } from '../harness/envoy.js';
import { bootstrap, httpListener, routeAllTo, startBaton, staticCluster, tempDir, waitFor } from '../harness/index.js';
import { clientTls, httpsGet, secureConnection, startSecureHost, tlsCertificate, trustedCa } from './contexts.js';
import { discoveringListener, moveIntoPlace, PairFiles, SecretFile, servedName, waitForName } from './discovered.js';

const root = await Authority.create();
const [first, second] = [
  await root.issue({ names: ['first.test'] }),
  await root.issue({ names: ['second.test'], validDays: [-1, 60.5] }),
];
const ca = root.certificate;
const SDS = 'listener.main.server_ssl_socket_factory.ssl_context_update_by_sds';
const EXPIRY = 'listener.main.ssl.certificate.server.expiration_unix_time_seconds';

function seconds(date: Date): number {
  return Math.floor(date.getTime() / 1000);
}

/** Starts a listener whose certificate is that of the secret `server`, in two files. */
async function startWithPair(t: Test, program: ProxyProgram, more: object = {}) {
  const directory = tempDir(t);
  const secret = new SecretFile(directory, 'server');
  mkdirSync(join(directory, 'live'));
  const pair = new PairFiles(join(directory, 'live'), 'server');
  pair.replace(first);
  secret.set({ tls_certificate: { ...pair.certificate, ...more } });
  const baton = await startBaton(t, { ...program, config: discoveringListener(secret.config) });
  return { baton, directory, pair, port: await baton.listenerPort('main'), secret };
}

besideEnvoy(
  'a listener serves the certificate of a resource file, and then those of its later versions',
  async (t, program) => {
    const { baton, port, secret } = await startWithPair(t, program);
    t.equal(await servedName(t, port), 'first.test');
    await baton.waitForStats({ [SDS]: 1, [EXPIRY]: seconds(first.x509.notAfter), 'sds.server.update_success': 1 });
    secret.set({ tls_certificate: tlsCertificate(second) });
    await waitForName(t, port, 'second.test');
    await baton.waitForStats({
      [SDS]: 2,
      [EXPIRY]: seconds(second.x509.notAfter),
      'sds.server.update_success': 2,
      'server.days_until_first_cert_expiring': 60,
    });
  },
);

besideEnvoy('files that a secret names are used when they are moved into place', async (t, program) => {
  const { baton, pair, port } = await startWithPair(t, program);
  pair.replace(second);
  await waitForName(t, port, 'second.test');
  await baton.waitForStats({ 'sds.server.update_success': 1, [EXPIRY]: seconds(second.x509.notAfter) });
  const { certificates } = JSON.parse((await baton.admin('/certs')).body);
  t.match(certificates, [{ cert_chain: [{ path: '<inline>', subject_alt_names: [{ dns: 'second.test' }] }] }]);
});

besideEnvoy('files that do not fit are counted, and the last good pair serves', async (t, program) => {
  const { baton, pair, port } = await startWithPair(t, program);
  pair.replaceKey(second.key);
  await waitFor(async () => (await baton.stats())['sds.server.key_rotation_failed']! > 0, { what: 'a refused pair' });
  t.equal(await servedName(t, port), 'first.test');
  pair.replaceChain(second.chain);
  await waitForName(t, port, 'second.test');
});

besideEnvoy('a change of watched_directory makes the files due', async (t, program) => {
  const directory = tempDir(t);
  // As Kubernetes does it: the files are links into a directory that is replaced.
  for (const [version, pair] of [first, second].entries()) {
    mkdirSync(join(directory, `v${version}`));
    writeFileSync(join(directory, `v${version}`, 'server.pem'), pair.chain);
    writeFileSync(join(directory, `v${version}`, 'server.key'), pair.key);
  }
  const current = join(directory, '..data');
  symlinkSync('v0', current);
  const secret = new SecretFile(directory, 'server');
  const files = new PairFiles(current, 'server').certificate;
  secret.set({ tls_certificate: { ...files, watched_directory: { path: directory } } });
  const baton = await startBaton(t, { ...program, config: discoveringListener(secret.config) });
  const port = await baton.listenerPort('main');
  t.equal(await servedName(t, port), 'first.test');
  symlinkSync('v1', `${current}.next`);
  renameSync(`${current}.next`, current);
  await waitForName(t, port, 'second.test');
});

besideEnvoy('another version of a secret does not read the files of its context again', async (t, program) => {
  const directory = tempDir(t);
  const authority = join(directory, 'ca.pem');
  writeFileSync(authority, root.certificate);
  const secret = new SecretFile(directory, 'server');
  secret.set({ tls_certificate: tlsCertificate(first) });
  const tickets = join(directory, 'tickets');
  writeFileSync(tickets, randomBytes(80));
  const validation_context = { trusted_ca: { filename: authority } };
  const session_ticket_keys = { keys: [{ filename: tickets }] };
  const config = discoveringListener(secret.config, { validation_context }, { session_ticket_keys });
  const baton = await startBaton(t, { ...program, config });
  const port = await baton.listenerPort('main');
  writeFileSync(authority, 'half of a certificate');
  writeFileSync(tickets, 'half of a key');
  secret.set({ tls_certificate: tlsCertificate(second) });
  await waitForName(t, port, 'second.test');
  t.equal((await httpsGet(port, { ca, servername: 'second.test', cert: first.chain, key: first.key })).status, 200);
});

for (const [what, content] of [
  [
    'a pair that does not match',
    { tls_certificate: { ...tlsCertificate(second), private_key: { inline_string: first.key } } },
  ],
  ['another part', { validation_context: trustedCa(root) }],
  [
    'a file that does not exist',
    { tls_certificate: { ...tlsCertificate(second), certificate_chain: { filename: '/nonexistent' } } },
  ],
] as const) {
  besideEnvoy(`an update with ${what} is rejected, and the last good secret serves`, async (t, program) => {
    const { baton, port, secret } = await startWithPair(t, program);
    secret.set(content);
    await baton.waitForStats({ 'sds.server.update_rejected': 1, 'sds.server.update_success': 1 });
    t.equal(await servedName(t, port), 'first.test');
    secret.set({ tls_certificate: tlsCertificate(second) });
    await waitForName(t, port, 'second.test');
    await baton.waitForStats({ 'sds.server.update_rejected': 1, 'sds.server.update_success': 2 });
  });
}

t.test('a rejected secret is used once the files that it names are right', async (t) => {
  const directory = tempDir(t);
  const secret = new SecretFile(directory, 'server');
  mkdirSync(join(directory, 'live'));
  const pair = new PairFiles(join(directory, 'live'), 'server');
  pair.replaceChain(first.chain);
  pair.replaceKey(second.key);
  secret.set({ tls_certificate: pair.certificate });
  const baton = await startBaton(t, { config: discoveringListener(secret.config) });
  const port = await baton.listenerPort('main');
  await t.rejects(servedName(t, port), 'without a secret connections are closed');
  t.match(baton.stderr, /server: tls_certificate\.private_key: .*it is not the key of the certificate/);
  pair.replaceKey(first.key);
  await waitForName(t, port, 'first.test');
});

besideEnvoy('a session from before an update gets a full handshake, and later ones resume', async (t, program) => {
  const { baton, port, secret } = await startWithPair(t, program);
  let updates = 1;
  for (const version of ['TLSv1.2', 'TLSv1.3'] as const) {
    secret.set({ tls_certificate: tlsCertificate(first) });
    await baton.waitForStats({ [SDS]: ++updates });
    const options = { ca, servername: 'first.test', minVersion: version, maxVersion: version };
    const session = await sessionOf(t, port, options);
    t.ok((await secureConnection(t, port, { ...options, session })).isSessionReused(), `${version} before`);
    secret.set({ tls_certificate: tlsCertificate(second) });
    await baton.waitForStats({ [SDS]: ++updates });
    const renewed = { ...options, servername: 'second.test' };
    const old = await secureConnection(t, port, { ...renewed, session });
    t.notOk(old.isSessionReused(), `${version} with the session of the previous certificate`);
    t.equal(old.getPeerCertificate().subject.CN, 'second.test');
    const next = await sessionOf(t, port, renewed);
    t.ok((await secureConnection(t, port, { ...renewed, session: next })).isSessionReused(), `${version} after`);
  }
});

async function sessionOf(t: Test, port: number, options: object): Promise<Buffer> {
  const socket = await secureConnection(t, port, options);
  const answered = new Promise((resolve) => socket.once('data', resolve));
  socket.write('GET / HTTP/1.1\r\nhost: a\r\n\r\n');
  await answered;
  return socket.getSession()!;
}

besideEnvoy(
  'an update of the trusted CA applies to sessions of clients that it no longer trusts',
  async (t, program) => {
    const other = await Authority.create('Other Root');
    const user = await root.issue({ names: ['user.test'] });
    const directory = tempDir(t);
    const [secret, trust] = [new SecretFile(directory, 'server'), new SecretFile(directory, 'trust')];
    secret.set({ tls_certificate: tlsCertificate(first) });
    trust.set({ validation_context: trustedCa(root) });
    const common = { validation_context_sds_secret_config: trust.config };
    const config = discoveringListener(secret.config, common, { require_client_certificate: true });
    const baton = await startBaton(t, { ...program, config });
    const port = await baton.listenerPort('main');
    const options = { ca, servername: 'first.test', maxVersion: 'TLSv1.2', cert: user.chain, key: user.key } as const;
    const session = await sessionOf(t, port, options);
    t.ok((await secureConnection(t, port, { ...options, session })).isSessionReused());
    trust.set({ validation_context: trustedCa(other) });
    await baton.waitForStats({ 'sds.trust.update_success': 2, [SDS]: 3 });
    await t.rejects(secureConnection(t, port, { ...options, session }));
    await baton.waitForStats({ 'listener.main.ssl.fail_verify_error': 1 });
  },
);

besideEnvoy(
  'session ticket keys from a file replace each other, and the previous ones still decrypt',
  async (t, program) => {
    const directory = tempDir(t);
    const [secret, tickets] = [new SecretFile(directory, 'server'), new SecretFile(directory, 'tickets')];
    const [one, two, three] = ['1', '2', '3'].map((text) => ({ inline_string: text.repeat(80) }));
    secret.set({ tls_certificate: tlsCertificate(first) });
    tickets.set({ session_ticket_keys: { keys: [one] } });
    const config = discoveringListener(secret.config, {}, { session_ticket_keys_sds_secret_config: tickets.config });
    const baton = await startBaton(t, { ...program, config });
    const port = await baton.listenerPort('main');
    const options = { ca, servername: 'first.test' };
    const session = await sessionOf(t, port, options);
    tickets.set({ session_ticket_keys: { keys: [two, one] } });
    await baton.waitForStats({ [SDS]: 3 });
    t.ok((await secureConnection(t, port, { ...options, session })).isSessionReused());
    tickets.set({ session_ticket_keys: { keys: [three] } });
    await baton.waitForStats({ [SDS]: 4 });
    t.notOk((await secureConnection(t, port, { ...options, session })).isSessionReused());
  },
);

besideEnvoy('connections to hosts use the secrets of files, as they are at the time', async (t, program) => {
  const directory = tempDir(t);
  const [one, two] = [await root.issue({ names: ['one.test'] }), await root.issue({ names: ['two.test'] })];
  const host = await startSecureHost(
    t,
    first,
    (request, response) => {
      const { CN } = (
        request.socket as never as { getPeerCertificate(): { subject: { CN: string } } }
      ).getPeerCertificate().subject;
      response.setHeader('connection', 'close');
      response.end(CN);
    },
    { ca, requestCert: true },
  );
  const [certificate, trust] = [new SecretFile(directory, 'client'), new SecretFile(directory, 'trust')];
  certificate.set({ tls_certificate: tlsCertificate(one) });
  trust.set({ validation_context: trustedCa(root) });
  const transport_socket = clientTls({
    tls_certificate_sds_secret_configs: [certificate.config],
    combined_validation_context: {
      default_validation_context: {
        match_typed_subject_alt_names: [{ san_type: 'DNS', matcher: { exact: 'first.test' } }],
      },
      validation_context_sds_secret_config: trust.config,
    },
  });
  const config = bootstrap({
    listeners: [httpListener('main', 0, { route_config: routeAllTo('hosts') })],
    clusters: [staticCluster('hosts', host.port, { transport_socket })],
    extra: { node: { id: 'node', cluster: 'cluster' } },
  });
  const baton = await startBaton(t, { ...program, config });
  const url = `http://127.0.0.1:${await baton.listenerPort('main')}/`;
  t.equal(await (await fetch(url)).text(), 'one.test');
  certificate.set({ tls_certificate: tlsCertificate(two) });
  await baton.waitForStats({ 'sds.client.update_success': 2 });
  t.equal(await (await fetch(url)).text(), 'two.test');
  trust.set({ validation_context: trustedCa(await Authority.create('Other Root')) });
  await baton.waitForStats({ 'sds.trust.update_success': 2 });
  t.equal((await fetch(url)).status, 503);
  await baton.waitForStats({
    'cluster.hosts.client_ssl_socket_factory.ssl_context_update_by_sds': 4,
    'cluster.hosts.ssl.fail_verify_error': 1,
  });
});

// Not beside Envoy, which shows the key: it redacts by field.
t.test('/config_dump shows no key of a file that holds certificate and key', async (t) => {
  const directory = tempDir(t);
  const both = { filename: join(directory, 'both.pem') };
  moveIntoPlace(both.filename, `${first.chain}\n${first.key}`);
  const [secret, trust] = [new SecretFile(directory, 'server'), new SecretFile(directory, 'trust')];
  secret.set({ tls_certificate: { certificate_chain: both, private_key: both } });
  trust.set({ validation_context: { trusted_ca: both } });
  const common = { validation_context_sds_secret_config: trust.config };
  const baton = await startBaton(t, { config: discoveringListener(secret.config, common) });
  t.equal(await servedName(t, await baton.listenerPort('main')), 'first.test');
  const { body } = await baton.admin('/config_dump?resource=dynamic_active_secrets');
  const redacted = { inline_bytes: Buffer.from('[redacted]').toString('base64') };
  const secrets = JSON.parse(body).configs.map((config: { secret: object }) => config.secret);
  t.match(secrets, [
    { tls_certificate: { certificate_chain: redacted, private_key: redacted } },
    { validation_context: { trusted_ca: redacted } },
  ]);
});

// Not beside Envoy, which then revokes nothing.
t.test('an empty list of revoked certificates is refused, and the last one applies', async (t) => {
  const [good, revoked] = [await root.issue(), await root.issue()];
  const directory = tempDir(t);
  const [authority, crl] = ['ca.pem', 'crl.pem'].map((name) => join(directory, name)) as [string, string];
  moveIntoPlace(authority, ca);
  moveIntoPlace(crl, await root.revoke([revoked]));
  const [secret, trust] = [new SecretFile(directory, 'server'), new SecretFile(directory, 'trust')];
  secret.set({ tls_certificate: tlsCertificate(first) });
  trust.set({ validation_context: { trusted_ca: { filename: authority }, crl: { filename: crl } } });
  const common = { validation_context_sds_secret_config: trust.config };
  const baton = await startBaton(t, { config: discoveringListener(secret.config, common) });
  const port = await baton.listenerPort('main');
  const request = ({ chain, key }: typeof good) => httpsGet(port, { ca, servername: 'first.test', cert: chain, key });
  t.equal((await request(good)).status, 200);
  await t.rejects(request(revoked));
  moveIntoPlace(crl, '');
  await baton.waitForStats({ 'sds.trust.key_rotation_failed': 1 });
  t.match(baton.stderr, /'trust' are not used.*crl is empty/);
  await t.rejects(request(revoked));
  t.equal((await request(good)).status, 200);
});

t.test('handshakes do not fail while the files of a certificate are moved into place', async (t) => {
  const { baton, pair, port } = await startWithPair(t, { command: undefined });
  let isOver = false;
  const seen = new Set<string>();
  const clients = Array.from({ length: 8 }, async () => {
    while (!isOver) seen.add(await servedName(t, port));
  });
  for (const next of [second, first, second, first, second]) {
    pair.replace(next);
    await waitForName(t, port, next === first ? 'first.test' : 'second.test');
  }
  isOver = true;
  await Promise.all(clients);
  t.strictSame(seen, new Set(['first.test', 'second.test']));
  t.equal((await baton.stats())['listener.main.ssl.connection_error'], 0);
});

t.test('a large bundle of authorities is used up to 1 MiB, and refused beyond', async (t) => {
  const authorities = await Promise.all(Array.from({ length: 20 }, (_, index) => Authority.create(`Root ${index}`)));
  const bundle = `${authorities.map(({ certificate }) => certificate).join('\n')}\n`;
  const directory = tempDir(t);
  const [secret, trust] = [new SecretFile(directory, 'server'), new SecretFile(directory, 'trust')];
  secret.set({ tls_certificate: tlsCertificate(first) });
  trust.set({ validation_context: trustedCa(root) });
  const common = { validation_context_sds_secret_config: trust.config };
  const baton = await startBaton(t, { config: discoveringListener(secret.config, common) });
  const repeated = (bytes: number) => bundle.repeat(Math.floor(bytes / bundle.length));
  trust.set({ validation_context: { trusted_ca: { inline_string: repeated(1024 * 1024) } } });
  await baton.waitForStats({ 'sds.trust.update_success': 2 });
  trust.set({ validation_context: { trusted_ca: { inline_string: repeated(10 * 1024 * 1024) } } });
  await baton.waitForStats({ 'sds.trust.update_rejected': 1 });
  t.match(baton.stderr, /trust: validation_context\.trusted_ca: it is larger than 1 MiB/);
});

t.test('a secret that names files of any size is bounded', async (t) => {
  const { baton, directory, pair, port } = await startWithPair(t, { command: undefined });
  moveIntoPlace(join(directory, 'live', 'server.pem'), first.chain.repeat(20_000));
  await baton.waitForStats({ 'sds.server.key_rotation_failed': 1 });
  t.match(baton.stderr, /tls_certificate\.certificate_chain: .*it is larger than 1 MiB/);
  rmSync(join(directory, 'live', 'server.pem'));
  mkdirSync(join(directory, 'live', 'server.pem'));
  t.equal(await servedName(t, port), 'first.test');
  rmSync(join(directory, 'live', 'server.pem'), { recursive: true });
  pair.replace(second);
  await waitForName(t, port, 'second.test');
});
