// TLS to hosts: verification, SNI, client certificates, session reuse, health checks, and the texts of failures.

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { TLSSocket } from 'node:tls';
import { Authority } from '../harness/certificates.js';
import { besideEnvoy } from '../harness/envoy.js';
import {
  bootstrap,
  type Config,
  fileAccessLog,
  httpListener,
  httpRequest,
  loopback,
  routeAllTo,
  startBaton,
  startTcpUpstream,
  staticCluster,
  tcpListener,
  tempDir,
  waitFor,
} from '../harness/index.js';
import { clientTls, startPlainHost, startSecureHost, tlsCertificate, trustedCa } from './contexts.js';

const root = await Authority.create();
const other = await Authority.create('Other Root');
const server = await root.issue({ names: ['server.test', { type: 'ip', value: '127.0.0.1' }] });
const user = await root.issue({ names: ['user.test'] });

const LOG = '%RESPONSE_CODE% %RESPONSE_FLAGS% [%UPSTREAM_TRANSPORT_FAILURE_REASON%]\n';

/** Returns a listener that routes all requests to `cluster`, and logs to `<directory>/log` if that is given. */
function plainListener(name: string, cluster: string, directory?: string): Config {
  const log = directory === undefined ? {} : { access_log: [fileAccessLog(join(directory, name), LOG)] };
  return httpListener(name, 0, { route_config: routeAllTo(cluster), ...log });
}

besideEnvoy(
  'requests reach a verified host over TLS 1.2, or 1.3 if the configuration permits it',
  async (t, program) => {
    const host = await startSecureHost(t, server, (request, answer) => {
      answer.end(`${(request.socket as TLSSocket).getProtocol()} ${(request.socket as TLSSocket).servername}`);
    });
    const validation = {
      ...trustedCa(root),
      match_typed_subject_alt_names: [{ san_type: 'DNS', matcher: { exact: 'server.test' } }],
    };
    const tls13 = { tls_params: { tls_maximum_protocol_version: 'TLSv1_3' } };
    const clusters = [
      staticCluster('a', host.port, {
        transport_socket: clientTls({ validation_context: validation }, { sni: 'server.test' }),
      }),
      staticCluster('b', host.port, { transport_socket: clientTls({ validation_context: validation, ...tls13 }) }),
    ];
    const listeners = [plainListener('a', 'a'), plainListener('b', 'b')];
    const baton = await startBaton(t, { ...program, config: bootstrap({ listeners, clusters }) });
    t.match(await httpRequest(await baton.listenerPort('a'), '/'), { status: 200, body: 'TLSv1.2 server.test' });
    t.match(await httpRequest(await baton.listenerPort('b'), '/'), { status: 200, body: 'TLSv1.3 false' });
    await baton.waitForStats({
      'cluster.a.ssl.handshake': 1,
      'cluster.a.ssl.no_certificate': 0,
      'cluster.a.ssl.versions.TLSv1.2': 1,
      'cluster.a.ssl.sigalgs.ecdsa_secp256r1_sha256': 1,
      'cluster.b.ssl.versions.TLSv1.3': 1,
      'cluster.b.ssl.connection_error': 0,
    });
  },
);

besideEnvoy('a host that is not the expected one gets no request, and the log says why', async (t, program) => {
  let requests = 0;
  const host = await startSecureHost(t, server, (_request, answer) => {
    requests++;
    answer.end();
  });
  const picky = await startSecureHost(t, server, (_request, answer) => void answer.end(), {
    requestCert: true,
    rejectUnauthorized: true,
    ca: root.certificate,
    maxVersion: 'TLSv1.2',
  });
  const plain = await startPlainHost(t, (_request, answer) => void answer.end());
  const san = (name: string) => [{ san_type: 'DNS', matcher: { exact: name } }];
  const cases: Record<string, [port: number, tls: Config, stat: string, text: string]> = {
    ca: [
      host.port,
      { validation_context: trustedCa(other) },
      'fail_verify_error',
      'CERTIFICATE_VERIFY_FAILED:verify_cert_failed:_X509_verify_cert:_certificate_verification_error_at_depth_0:_unable_to_get_local_issuer_certificate',
    ],
    san: [
      host.port,
      { validation_context: { ...trustedCa(root), match_typed_subject_alt_names: san('other.test') } },
      'fail_verify_san',
      'CERTIFICATE_VERIFY_FAILED:verify_cert_failed:_SAN_matcher,_certificate_SANs_are_[server.test,_127.0.0.1]',
    ],
    hash: [
      host.port,
      { validation_context: { verify_certificate_hash: ['00'.repeat(32)] } },
      'fail_verify_cert_hash',
      'CERTIFICATE_VERIFY_FAILED:verify_cert_failed:_cert_hash_and_spki',
    ],
    plain: [plain, {}, 'connection_error', 'WRONG_VERSION_NUMBER'],
    picky: [picky.port, {}, 'connection_error', 'SSLV3_ALERT_HANDSHAKE_FAILURE'],
  };
  const directory = tempDir(t);
  const names = Object.keys(cases);
  const baton = await startBaton(t, {
    ...program,
    args: ['--file-flush-interval-msec', '50'],
    config: bootstrap({
      listeners: names.map((name) => plainListener(name, name, directory)),
      clusters: names.map((name) =>
        staticCluster(name, cases[name]![0], { transport_socket: clientTls(cases[name]![1]) }),
      ),
    }),
  });
  for (const [name, [, , stat, text]] of Object.entries(cases)) {
    const answer = await httpRequest(await baton.listenerPort(name), '/');
    t.equal(answer.status, 503);
    t.equal(
      answer.body,
      'upstream connect error or disconnect/reset before headers. reset reason: remote connection failure',
    );
    await baton.waitForStats({
      [`cluster.${name}.ssl.${stat}`]: 1,
      [`cluster.${name}.ssl.handshake`]: 0,
      [`cluster.${name}.upstream_cx_connect_fail`]: 1,
    });
    const line = await waitFor(() => readFileSync(join(directory, name), 'utf8') || undefined, {
      what: `log of ${name}`,
    });
    t.match(line, /^503 UF \[TLS_error:\|\d+:SSL_routines:OPENSSL_internal:/);
    t.ok(line.includes(`OPENSSL_internal:${text}:TLS_error_end]`), line);
  }
  t.equal(requests, 0);
});

besideEnvoy('match_upstream gives a request the scheme of its host', async (t, program) => {
  const host = await startSecureHost(t, server, (_request, answer) => void answer.end());
  const cluster = staticCluster('host', host.port, {
    transport_socket: clientTls({ validation_context: trustedCa(root) }),
  });
  const directory = tempDir(t);
  const listener = httpListener('main', 0, {
    route_config: routeAllTo('host'),
    scheme_header_transformation: { match_upstream: true },
    access_log: [fileAccessLog(join(directory, 'log'), '%REQ(:SCHEME)%\n')],
  });
  const args = ['--file-flush-interval-msec', '50'];
  const baton = await startBaton(t, {
    ...program,
    args,
    config: bootstrap({ listeners: [listener], clusters: [cluster] }),
  });
  t.match(await httpRequest(await baton.listenerPort('main'), '/'), { status: 200 });
  const line = await waitFor(() => readFileSync(join(directory, 'log'), 'utf8') || undefined, { what: 'the log line' });
  t.equal(line, 'https\n');
});

besideEnvoy('the client certificate of a cluster is presented to hosts that ask for one', async (t, program) => {
  const options = { requestCert: true, rejectUnauthorized: true, ca: root.certificate };
  const host = await startSecureHost(
    t,
    server,
    (request, answer) => void answer.end((request.socket as TLSSocket).getPeerCertificate().subject.CN),
    options,
  );
  const common = { tls_certificates: [tlsCertificate(user)], validation_context: trustedCa(root) };
  const cluster = staticCluster('host', host.port, { transport_socket: clientTls(common) });
  const config = bootstrap({ listeners: [plainListener('main', 'host')], clusters: [cluster] });
  const baton = await startBaton(t, { ...program, config });
  t.match(await httpRequest(await baton.listenerPort('main'), '/'), { status: 200, body: 'user.test' });
});

besideEnvoy('auto_host_sni sends the hostname of each endpoint', async (t, program) => {
  const host = await startSecureHost(t, server, (request, answer) => {
    answer.end(String((request.socket as TLSSocket).servername));
  });
  const tls = clientTls({}, { sni: 'fallback.test', auto_host_sni: true });
  const endpoint = { address: loopback(host.port), hostname: 'endpoint.test' };
  const cluster = staticCluster('named', host.port, {
    transport_socket: tls,
    load_assignment: { cluster_name: 'named', endpoints: [{ lb_endpoints: [{ endpoint }] }] },
  });
  const unnamed = staticCluster('unnamed', host.port, { transport_socket: tls });
  const baton = await startBaton(t, {
    ...program,
    config: bootstrap({
      listeners: [plainListener('named', 'named'), plainListener('unnamed', 'unnamed')],
      clusters: [cluster, unnamed],
    }),
  });
  t.equal((await httpRequest(await baton.listenerPort('named'), '/')).body, 'endpoint.test');
  t.equal((await httpRequest(await baton.listenerPort('unnamed'), '/')).body, 'fallback.test');
});

// With TLS 1.3 a session is used once, and its host sends none in a resumed handshake that ends with the response.
for (const [version, resumed] of [
  ['TLSv1_2', 2],
  ['TLSv1_3', 1],
] as const) {
  besideEnvoy(`${version}: later connections to a host resume the session of an earlier one`, async (t, program) => {
    const host = await startSecureHost(t, server, (_request, answer) => {
      answer.setHeader('connection', 'close');
      answer.end();
    });
    const common = { tls_params: { tls_maximum_protocol_version: version }, validation_context: trustedCa(root) };
    const cluster = staticCluster('host', host.port, { transport_socket: clientTls(common) });
    const off = staticCluster('off', host.port, { transport_socket: clientTls(common, { max_session_keys: 0 }) });
    const baton = await startBaton(t, {
      ...program,
      config: bootstrap({
        listeners: [plainListener('host', 'host'), plainListener('off', 'off')],
        clusters: [cluster, off],
      }),
    });
    for (const name of ['host', 'off']) {
      for (let i = 0; i < 3; i++) await httpRequest(await baton.listenerPort(name), '/');
    }
    await baton.waitForStats({
      'cluster.host.ssl.handshake': 3,
      'cluster.host.ssl.session_reused': resumed,
      'cluster.off.ssl.handshake': 3,
      'cluster.off.ssl.session_reused': 0,
    });
  });
}

besideEnvoy('a host may renegotiate if allow_renegotiation permits it', async (t, program) => {
  const host = await startSecureHost(
    t,
    server,
    (request, answer) => {
      const socket = request.socket as TLSSocket;
      socket.renegotiate({ rejectUnauthorized: false }, (error) => {
        if (error) socket.destroy();
        else answer.end('renegotiated');
      });
    },
    { maxVersion: 'TLSv1.2' },
  );
  const clusters = [true, false].map((allow_renegotiation) =>
    staticCluster(`${allow_renegotiation}`, host.port, { transport_socket: clientTls({}, { allow_renegotiation }) }),
  );
  const listeners = ['true', 'false'].map((name) => plainListener(name, name));
  const baton = await startBaton(t, { ...program, config: bootstrap({ listeners, clusters }) });
  t.match(await httpRequest(await baton.listenerPort('true'), '/'), { status: 200, body: 'renegotiated' });
  t.match(await httpRequest(await baton.listenerPort('false'), '/'), { status: 503 });
});

besideEnvoy('a TCP proxy passes bytes to a host over TLS, and ends with close_notify', async (t, program) => {
  let received = '';
  let hasEnded = false;
  const host = await startSecureHost(t, server, () => {});
  const { createServer } = await import('node:tls');
  const echo = createServer({ cert: server.chain, key: server.key, allowHalfOpen: true }, (socket) => {
    socket.setEncoding('utf8').on('data', (chunk: string) => {
      received += chunk;
    });
    socket.on('end', () => {
      hasEnded = true;
      socket.end(`got ${received}`);
    });
  });
  await new Promise<void>((resolve) => echo.listen(0, '127.0.0.1', resolve));
  t.teardown(() => echo.close());
  const { port } = echo.address() as { port: number };
  const cluster = staticCluster('host', port, { transport_socket: clientTls({ validation_context: trustedCa(root) }) });
  const config = bootstrap({ listeners: [tcpListener('main', 0, { cluster: 'host' })], clusters: [cluster] });
  const baton = await startBaton(t, { ...program, config });
  const { connect } = await import('node:net');
  const client = connect({ port: await baton.listenerPort('main'), host: '127.0.0.1', allowHalfOpen: true });
  let answer = '';
  client.setEncoding('utf8').on('data', (chunk: string) => {
    answer += chunk;
  });
  client.end('hello');
  await new Promise((resolve) => client.once('end', resolve));
  t.ok(hasEnded, 'the half-close of the client reached the host');
  t.equal(answer, 'got hello');
  t.equal(host.sockets.length, 0);
});

besideEnvoy('a host that does not finish its handshake fails after connect_timeout', async (t, program) => {
  const silent = await startTcpUpstream(t, () => {});
  const cluster = staticCluster('host', silent.port, { transport_socket: clientTls(), connect_timeout: '0.3s' });
  const config = bootstrap({ listeners: [plainListener('main', 'host')], clusters: [cluster] });
  const baton = await startBaton(t, { ...program, config });
  const answer = await httpRequest(await baton.listenerPort('main'), '/');
  t.equal(answer.status, 503);
  t.match(answer.body, /reset reason: connection timeout$/);
  await baton.waitForStats({ 'cluster.host.upstream_cx_connect_timeout': 1, 'cluster.host.ssl.handshake': 0 });
});

besideEnvoy('health checks use the TLS of the cluster', async (t, program) => {
  let checks = 0;
  const host = await startSecureHost(t, server, (request, answer) => {
    if (request.url === '/health') checks++;
    answer.end();
  });
  const check = {
    timeout: '1s',
    interval: '0.2s',
    no_traffic_interval: '0.2s',
    healthy_threshold: 1,
    unhealthy_threshold: 1,
    http_health_check: { path: '/health' },
  };
  const tls = (authority: Authority) => clientTls({ validation_context: trustedCa(authority) });
  const clusters = [
    staticCluster('good', host.port, { transport_socket: tls(root), health_checks: [check] }),
    staticCluster('bad', host.port, { transport_socket: tls(other), health_checks: [check] }),
  ];
  const baton = await startBaton(t, { ...program, config: bootstrap({ listeners: [], clusters }) });
  await baton.waitForStats({ 'cluster.good.membership_healthy': 1, 'cluster.bad.membership_healthy': 0 });
  t.ok(checks > 0);
});
