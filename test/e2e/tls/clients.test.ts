// TLS with clients: versions, certificates, client certificates, session resumption, and failed handshakes.

import { connect as connectTcp } from 'node:net';
import t, { type Test } from 'tap';
import { Authority } from '../harness/certificates.js';
import { besideEnvoy } from '../harness/envoy.js';
import { bootstrap, type Config, startBaton, waitFor } from '../harness/index.js';
import { httpsGet, httpsListener, secureConnection, serverTls, trustedCa } from './contexts.js';

const root = await Authority.create();
const other = await Authority.create('Other Root');
const server = await root.issue({ names: ['server.test'] });
const rsa = await root.issue({ names: ['server.test'], key: 'RSA-2048' });
const user = await (await root.issueAuthority('Intermediate')).issue({ names: ['user.test'] });
const ca = root.certificate;

const MANAGER: Config = {
  codec_type: 'HTTP1',
  route_config: {
    virtual_hosts: [
      {
        name: 'all',
        domains: ['*'],
        routes: [{ match: { prefix: '/' }, direct_response: { status: 200, body: { inline_string: 'secure' } } }],
      },
    ],
  },
};

/** Starts one listener `main` with this transport socket. `ssl`: prefix of its stats. */
async function start(t: Test, program: object, tls: Config, chain: Config = {}) {
  const listener = { ...httpsListener('main', tls, MANAGER, chain), stat_prefix: 'main' };
  const baton = await startBaton(t, { ...program, config: bootstrap({ listeners: [listener], clusters: [] }) });
  return { baton, port: await baton.listenerPort('main'), ssl: 'listener.main.ssl.' };
}

for (const version of ['TLSv1.2', 'TLSv1.3'] as const) {
  for (const certificate of [server, rsa]) {
    const kind = certificate === rsa ? 'RSA' : 'ECDSA';
    besideEnvoy(`${version} with an ${kind} certificate serves, and counts the handshake`, async (t, program) => {
      const { baton, port, ssl } = await start(t, program, serverTls([certificate]));
      const { body, socket, status } = await httpsGet(port, { ca, minVersion: version, maxVersion: version });
      t.equal(status, 200);
      t.equal(body, 'secure');
      t.equal(socket.getProtocol(), version);
      await baton.waitForStats({
        [`${ssl}handshake`]: 1,
        [`${ssl}no_certificate`]: 1,
        [`${ssl}session_reused`]: 0,
        [`${ssl}connection_error`]: 0,
        [`${ssl}versions.${version}`]: 1,
        [`${ssl}ciphers.${socket.getCipher().name}`]: 1,
        [`${ssl}curves.X25519`]: 1,
        'http.main.downstream_cx_ssl_total': 1,
      });
    });
  }
}

besideEnvoy('versions outside of the configured ones fail the handshake', async (t, program) => {
  const common = { tls_params: { tls_minimum_protocol_version: 'TLSv1_3' } };
  const { baton, port, ssl } = await start(t, program, serverTls([server], common));
  await t.rejects(httpsGet(port, { ca, maxVersion: 'TLSv1.2' }), { message: /alert protocol version/ });
  await baton.waitForStats({ [`${ssl}connection_error`]: 1, [`${ssl}handshake`]: 0 });
  t.equal((await httpsGet(port, { ca })).status, 200);
});

besideEnvoy('ciphers and curves are those of the configuration', async (t, program) => {
  const common = {
    tls_params: {
      tls_maximum_protocol_version: 'TLSv1_2',
      cipher_suites: ['[ECDHE-ECDSA-AES128-GCM-SHA256|ECDHE-ECDSA-CHACHA20-POLY1305]', 'ECDHE-ECDSA-AES256-GCM-SHA384'],
      ecdh_curves: ['P-384'],
    },
  };
  const { port } = await start(t, program, serverTls([server], common));
  const chosen = await httpsGet(port, { ca });
  t.equal(chosen.socket.getCipher().name, 'ECDHE-ECDSA-AES128-GCM-SHA256');
  t.match(chosen.socket.getEphemeralKeyInfo(), { name: 'secp384r1' });
  const chacha = await httpsGet(port, { ca, ciphers: 'ECDHE-ECDSA-CHACHA20-POLY1305:ECDHE-ECDSA-AES128-GCM-SHA256' });
  t.equal(chacha.socket.getCipher().name, 'ECDHE-ECDSA-CHACHA20-POLY1305', 'the client decides within brackets');
  await t.rejects(httpsGet(port, { ca, ciphers: 'ECDHE-RSA-AES128-GCM-SHA256' }), { message: /handshake failure/ });
});

besideEnvoy('a client that can verify both gets the ECDSA certificate', async (t, program) => {
  const { port } = await start(t, program, serverTls([rsa, server]));
  const modern = await httpsGet(port, { ca });
  t.equal(modern.socket.getPeerCertificate().serialNumber, server.x509.serialNumber.toUpperCase());
  const old = await httpsGet(port, { ca, sigalgs: 'rsa_pss_rsae_sha256' });
  t.equal(old.socket.getPeerCertificate().serialNumber, rsa.x509.serialNumber.toUpperCase());
});

besideEnvoy('ALPN: the order of the server decides, and no common protocol is no error', async (t, program) => {
  const { port } = await start(t, program, serverTls([server], { alpn_protocols: ['http/1.1', 'other'] }));
  for (const [offered, selected] of [
    [['other', 'http/1.1'], 'http/1.1'],
    [['other'], 'other'],
    [['unknown'], false],
    [undefined, false],
  ] as const) {
    const socket = await secureConnection(t, port, { ca, ...(offered && { ALPNProtocols: [...offered] }) });
    t.equal(socket.alpnProtocol, selected, String(offered));
  }
});

besideEnvoy('a required client certificate is verified, and refusals are counted by kind', async (t, program) => {
  const common = { validation_context: trustedCa(root) };
  const tls = serverTls([server], common, { require_client_certificate: true });
  const { baton, port, ssl } = await start(t, program, tls);
  const expired = await root.issue({ names: ['user.test'], validDays: [-20, -10] });
  const stranger = await other.issue({ names: ['user.test'] });
  t.equal((await httpsGet(port, { ca, cert: user.chain, key: user.key })).status, 200);
  await t.rejects(httpsGet(port, { ca }));
  await t.rejects(httpsGet(port, { ca, cert: expired.chain, key: expired.key }));
  await t.rejects(httpsGet(port, { ca, cert: stranger.chain, key: stranger.key }));
  await baton.waitForStats({
    [`${ssl}handshake`]: 1,
    [`${ssl}no_certificate`]: 0,
    [`${ssl}fail_verify_no_cert`]: 1,
    [`${ssl}fail_verify_error`]: 2,
    [`${ssl}connection_error`]: 0,
    [`${ssl}sigalgs.ecdsa_secp256r1_sha256`]: 1,
  });
});

besideEnvoy('an optional client certificate must be valid if there is one', async (t, program) => {
  const { port } = await start(t, program, serverTls([server], { validation_context: trustedCa(root) }));
  const stranger = await other.issue();
  t.equal((await httpsGet(port, { ca })).status, 200);
  t.equal((await httpsGet(port, { ca, cert: user.chain, key: user.key })).status, 200);
  await t.rejects(httpsGet(port, { ca, cert: stranger.chain, key: stranger.key }));
});

besideEnvoy('ACCEPT_UNTRUSTED accepts any client certificate, and counts what is wrong with it', async (t, program) => {
  const validation = { ...trustedCa(root), trust_chain_verification: 'ACCEPT_UNTRUSTED' };
  const { baton, port, ssl } = await start(t, program, serverTls([server], { validation_context: validation }));
  const stranger = await other.issue();
  t.equal((await httpsGet(port, { ca, cert: stranger.chain, key: stranger.key })).status, 200);
  await baton.waitForStats({ [`${ssl}handshake`]: 1, [`${ssl}fail_verify_error`]: 1 });
});

besideEnvoy('subject alternative names of all types decide about client certificates', async (t, program) => {
  const named = await root.issue({
    names: [
      'a.user.test',
      { type: 'url', value: 'spiffe://domain/user' },
      { type: 'email', value: 'user@a.test' },
      { type: 'ip', value: '10.1.2.3' },
    ],
  });
  const cases: [string, Config, boolean][] = [
    ['DNS', { exact: 'a.user.test' }, true],
    ['DNS', { exact: 'b.user.test' }, false],
    ['DNS', { suffix: '.user.test' }, true],
    ['DNS', { safe_regex: { regex: '[a-z]\\.user\\.test' } }, true],
    ['DNS', { safe_regex: { regex: '[a-z]\\.user' } }, false],
    ['URI', { prefix: 'spiffe://domain/' }, true],
    ['URI', { exact: 'a.user.test' }, false],
    ['EMAIL', { exact: 'user@a.test' }, true],
    ['IP_ADDRESS', { exact: '10.1.2.3' }, true],
    ['IP_ADDRESS', { exact: '10.1.2.4' }, false],
  ];
  const listeners = cases.map(([type, matcher], index) => {
    const validation = { ...trustedCa(root), match_typed_subject_alt_names: [{ san_type: type, matcher }] };
    return { ...httpsListener(`l${index}`, serverTls([server], { validation_context: validation }), MANAGER) };
  });
  const baton = await startBaton(t, { ...program, config: bootstrap({ listeners, clusters: [] }) });
  for (const [index, [type, matcher, isAccepted]] of cases.entries()) {
    const port = await baton.listenerPort(`l${index}`);
    const answer = httpsGet(port, { ca, cert: named.chain, key: named.key });
    const outcome = await answer.then(
      ({ status }) => status === 200,
      () => false,
    );
    t.equal(outcome, isAccepted, `${type} ${JSON.stringify(matcher)}`);
  }
});

besideEnvoy('hashes of a certificate or of its key vouch for it without a CA', async (t, program) => {
  const { createHash, X509Certificate } = await import('node:crypto');
  const certificate = new X509Certificate(user.certificate);
  const spki = certificate.publicKey.export({ type: 'spki', format: 'der' });
  const cases: [Config, boolean][] = [
    [{ verify_certificate_hash: [certificate.fingerprint256] }, true],
    [{ verify_certificate_hash: [certificate.fingerprint256.replaceAll(':', '').toLowerCase()] }, true],
    [{ verify_certificate_spki: [createHash('sha256').update(spki).digest('base64')] }, true],
    [{ verify_certificate_hash: ['00'.repeat(32)] }, false],
  ];
  const listeners = cases.map(([validation], index) =>
    httpsListener(`l${index}`, serverTls([server], { validation_context: validation }), MANAGER),
  );
  const baton = await startBaton(t, { ...program, config: bootstrap({ listeners, clusters: [] }) });
  for (const [index, [, isAccepted]] of cases.entries()) {
    const answer = httpsGet(await baton.listenerPort(`l${index}`), { ca, cert: user.chain, key: user.key });
    t.equal(
      await answer.then(
        ({ status }) => status === 200,
        () => false,
      ),
      isAccepted,
      `case ${index}`,
    );
  }
});

besideEnvoy('a revoked client certificate is refused', async (t, program) => {
  const good = await root.issue();
  const revoked = await root.issue();
  const crl = { inline_string: await root.revoke([revoked]) };
  const validation = { ...trustedCa(root), crl };
  const { port } = await start(t, program, serverTls([server], { validation_context: validation }));
  t.equal((await httpsGet(port, { ca, cert: good.chain, key: good.key })).status, 200);
  await t.rejects(httpsGet(port, { ca, cert: revoked.chain, key: revoked.key }));
});

besideEnvoy('a client that sends no SNI fails with require_sni', async (t, program) => {
  const { port } = await start(t, program, serverTls([server], {}, { require_sni: true }));
  t.equal((await httpsGet(port, { ca })).status, 200);
  await t.rejects(httpsGet(port, { ca, servername: '', checkServerIdentity: () => undefined }));
});

besideEnvoy(
  'plain HTTP, garbage and an end in the middle of a handshake are closed and counted',
  async (t, program) => {
    const { baton, port, ssl } = await start(t, program, serverTls([server]));
    for (const bytes of ['GET / HTTP/1.1\r\nhost: a\r\n\r\n', '\x16\x03\x01\x00\x05\x01\x00\x00\x01\x00']) {
      const socket = connectTcp(port, '127.0.0.1');
      socket.on('error', () => {});
      const closed = new Promise((resolve) => socket.once('close', resolve));
      socket.resume();
      socket.write(Buffer.from(bytes, 'latin1'));
      await closed;
    }
    await baton.waitForStats({ [`${ssl}connection_error`]: 2 });
    const socket = connectTcp(port, '127.0.0.1');
    socket.end(Buffer.from('\x16\x03\x01\x02', 'latin1'));
    await baton.waitForStats({ 'listener.main.downstream_cx_destroy': 3, [`${ssl}connection_error`]: 2 });
    t.equal((await httpsGet(port, { ca })).status, 200);
  },
);

besideEnvoy('a handshake that stops halfway is closed after transport_socket_connect_timeout', async (t, program) => {
  const chain = { transport_socket_connect_timeout: '0.3s' };
  const { baton, port } = await start(t, program, serverTls([server]), chain);
  const socket = connectTcp(port, '127.0.0.1');
  t.teardown(() => socket.destroy());
  socket.on('error', () => {});
  socket.write(Buffer.from('\x16\x03\x01\x02\x00\x01', 'latin1'));
  await new Promise((resolve) => socket.resume().once('close', resolve));
  await baton.waitForStats({ 'listener.main.downstream_cx_transport_socket_connect_timeout': 1 });
});

for (const version of ['TLSv1.2', 'TLSv1.3'] as const) {
  besideEnvoy(`${version} sessions resume with tickets`, async (t, program) => {
    const { baton, port, ssl } = await start(t, program, serverTls([server]));
    const options = { ca, minVersion: version, maxVersion: version };
    const socket = await secureConnection(t, port, options);
    const ticket = new Promise<Buffer>((resolve) => socket.once('session', resolve));
    socket.write('GET / HTTP/1.1\r\nhost: a\r\n\r\n');
    const session = await ticket;
    const again = await secureConnection(t, port, { ...options, session });
    t.ok(again.isSessionReused());
    await baton.waitForStats({ [`${ssl}session_reused`]: 1, [`${ssl}handshake`]: 2 });
  });
}

t.test('workers share the keys of tickets', async (t) => {
  const { port } = await start(t, { args: ['--concurrency', '4'] }, serverTls([server]));
  const socket = await secureConnection(t, port, { ca });
  const ticket = new Promise<Buffer>((resolve) => socket.once('session', resolve));
  socket.write('GET / HTTP/1.1\r\nhost: a\r\n\r\n');
  const session = await ticket;
  for (let i = 0; i < 20; i++) {
    const again = await secureConnection(t, port, { ca, session });
    t.ok(again.isSessionReused(), `connection ${i}`);
    again.destroy();
  }
});

besideEnvoy('no session resumes where resumption is disabled', async (t, program) => {
  const more = { disable_stateless_session_resumption: true, disable_stateful_session_resumption: true };
  const { port } = await start(t, program, serverTls([server], {}, more));
  const options = { ca, maxVersion: 'TLSv1.2' } as const;
  const socket = await secureConnection(t, port, options);
  const session = socket.getSession()!;
  socket.write('GET / HTTP/1.1\r\nhost: a\r\n\r\n');
  await new Promise((resolve) => socket.once('data', resolve));
  const again = await secureConnection(t, port, { ...options, session });
  t.notOk(again.isSessionReused());
});

besideEnvoy('a client certificate that a session has proved counts in the resumed session', async (t, program) => {
  const common = { validation_context: trustedCa(root) };
  const tls = serverTls([server], common, { require_client_certificate: true });
  const { baton, port, ssl } = await start(t, program, tls);
  const options = { ca, cert: user.chain, key: user.key, maxVersion: 'TLSv1.2' } as const;
  const socket = await secureConnection(t, port, options);
  const session = socket.getSession()!;
  const again = await secureConnection(t, port, { ...options, session });
  t.ok(again.isSessionReused());
  await baton.waitForStats({ [`${ssl}session_reused`]: 1, [`${ssl}no_certificate`]: 0 });
});

t.test('a large upload and download pass unchanged while both sides are slow', async (t) => {
  const { startSecureHost } = await import('./contexts.js');
  const host = await startSecureHost(t, server, (request, answer) => request.pipe(answer));
  const { clientTls } = await import('./contexts.js');
  const { routeAllTo, staticCluster } = await import('../harness/index.js');
  const cluster = staticCluster('host', host.port, { transport_socket: clientTls() });
  const listener = httpsListener('main', serverTls([server]), {
    codec_type: 'HTTP1',
    route_config: routeAllTo('host'),
  });
  const baton = await startBaton(t, { config: bootstrap({ listeners: [listener], clusters: [cluster] }) });
  const { createHash, randomBytes } = await import('node:crypto');
  const { request } = await import('node:https');
  const sent = randomBytes(12_000_000);
  const received = createHash('sha256');
  const port = await baton.listenerPort('main');
  await new Promise<void>((resolve, reject) => {
    const client = request({ host: '127.0.0.1', port, ca, servername: 'server.test', method: 'POST' }, (answer) => {
      answer.on('data', (chunk: Buffer) => {
        received.update(chunk);
        answer.pause();
        setImmediate(() => answer.resume());
      });
      answer.on('end', resolve);
    });
    client.on('error', reject);
    client.end(sent);
  });
  t.equal(received.digest('hex'), createHash('sha256').update(sent).digest('hex'));
  await waitFor(async () => (await baton.stat('cluster.host.ssl.handshake')) === 1, { what: 'the handshake' });
});
