// TLS with clients: versions, ciphers, certificates, ALPN, and failed handshakes.

import { existsSync, readFileSync } from 'node:fs';
import { connect as connectTcp } from 'node:net';
import { join } from 'node:path';
import t from 'tap';
import { Authority } from '../harness/certificates.js';
import { besideEnvoy } from '../harness/envoy.js';
import {
  bootstrap,
  type Config,
  fileAccessLog,
  startBaton,
  startTcpUpstream,
  staticCluster,
  tcpListener,
  tempDir,
  waitFor,
} from '../harness/index.js';
import { httpsGet, secureConnection, serverTls } from './contexts.js';
import { startHttps } from './https-proxy.js';

const root = await Authority.create();
const server = await root.issue({ names: ['server.test'] });
const rsa = await root.issue({ names: ['server.test'], key: 'RSA-2048' });
const ca = root.certificate;

for (const version of ['TLSv1.2', 'TLSv1.3'] as const) {
  for (const certificate of [server, rsa]) {
    const kind = certificate === rsa ? 'RSA' : 'ECDSA';
    besideEnvoy(`${version} with an ${kind} certificate serves, and counts the handshake`, async (t, program) => {
      const { baton, port, ssl } = await startHttps(t, program, serverTls([certificate]));
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
  const { baton, port, ssl } = await startHttps(t, program, serverTls([server], common));
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
  const { port } = await startHttps(t, program, serverTls([server], common));
  const chosen = await httpsGet(port, { ca });
  t.equal(chosen.socket.getCipher().name, 'ECDHE-ECDSA-AES128-GCM-SHA256');
  t.match(chosen.socket.getEphemeralKeyInfo(), { name: 'secp384r1' });
  const chacha = await httpsGet(port, {
    maxVersion: 'TLSv1.2',
    ca,
    ciphers: 'ECDHE-ECDSA-CHACHA20-POLY1305:ECDHE-ECDSA-AES128-GCM-SHA256',
  });
  t.equal(chacha.socket.getCipher().name, 'ECDHE-ECDSA-CHACHA20-POLY1305', 'the client decides within brackets');
  await t.rejects(httpsGet(port, { ca, ciphers: 'ECDHE-RSA-AES128-GCM-SHA256' }), { message: /handshake failure/ });
});

besideEnvoy('a client that can verify both gets the ECDSA certificate', async (t, program) => {
  const { port } = await startHttps(t, program, serverTls([rsa, server]));
  const modern = await httpsGet(port, { ca });
  t.equal(modern.socket.getPeerCertificate().serialNumber, server.x509.serialNumber.toUpperCase());
  const old = await httpsGet(port, { ca, sigalgs: 'rsa_pss_rsae_sha256' });
  t.equal(old.socket.getPeerCertificate().serialNumber, rsa.x509.serialNumber.toUpperCase());
});

besideEnvoy('ALPN: the order of the server decides, and no common protocol is not an error', async (t, program) => {
  const { port } = await startHttps(t, program, serverTls([server], { alpn_protocols: ['http/1.1', 'other'] }));
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

besideEnvoy('the access log of a TCP proxy has the reason of a failed handshake', async (t, program) => {
  const host = await startTcpUpstream(t, () => {});
  const directory = tempDir(t);
  const log = join(directory, 'log');
  const format = '%RESPONSE_FLAGS% %DOWNSTREAM_TRANSPORT_FAILURE_REASON%\n';
  const listener = tcpListener('main', 0, { cluster: 'host', access_log: [fileAccessLog(log, format)] });
  const [chain] = listener['filter_chains'] as Config[];
  const secured = { ...listener, filter_chains: [{ ...chain, transport_socket: serverTls([server]) }] };
  const baton = await startBaton(t, {
    ...program,
    args: ['--file-flush-interval-msec', '50'],
    config: bootstrap({ listeners: [secured], clusters: [staticCluster('host', host.port)] }),
  });
  const socket = connectTcp(await baton.listenerPort('main'), '127.0.0.1');
  t.teardown(() => socket.destroy());
  socket.on('error', () => {});
  socket.resume().write('GET / HTTP/1.1\r\nhost: a\r\n\r\n');
  const line = await waitFor(() => (existsSync(log) && readFileSync(log, 'utf8')) || undefined, { what: 'a log line' });
  t.equal(line, '- TLS_error:|268435612:SSL_routines:OPENSSL_internal:HTTP_REQUEST:TLS_error_end\n');
});

// Envoy 1.40 accepts the field without effect.

t.test('a client that sends no SNI fails with require_sni', async (t) => {
  const { port } = await startHttps(t, {}, serverTls([server], {}, { require_sni: true }));
  t.equal((await httpsGet(port, { ca })).status, 200);
  await t.rejects(httpsGet(port, { ca, servername: '', checkServerIdentity: () => undefined }));
});

besideEnvoy(
  'plain HTTP, garbage and an end in the middle of a handshake are closed and counted',
  async (t, program) => {
    const { baton, port, ssl } = await startHttps(t, program, serverTls([server]));
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
  const { baton, port } = await startHttps(t, program, serverTls([server]), chain);
  const socket = connectTcp(port, '127.0.0.1');
  t.teardown(() => socket.destroy());
  socket.on('error', () => {});
  socket.write(Buffer.from('\x16\x03\x01\x02\x00\x01', 'latin1'));
  await new Promise((resolve) => socket.resume().once('close', resolve));
  await baton.waitForStats({ 'listener.main.downstream_cx_transport_socket_connect_timeout': 1 });
});
