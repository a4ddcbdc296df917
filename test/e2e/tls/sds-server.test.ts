// TLS secrets from a management server (SDS).

import t, { type Test } from 'tap';
import { Authority } from '../harness/certificates.js';
import { type ControlPlane, startControlPlane, type XdsProtocol } from '../harness/control-plane.js';
import { besideEnvoy, type ProxyProgram } from '../harness/envoy.js';
import { bootstrap, httpListener, routeAllTo, startBaton, staticCluster, waitFor } from '../harness/index.js';
import {
  clientTls,
  httpsGet,
  httpsListener,
  secureConnection,
  serverTls,
  startSecureHost,
  tlsCertificate,
  trustedCa,
} from './contexts.js';
import { servedName, waitForName } from './discovered.js';
import { MANAGER } from './https-proxy.js';

const root = await Authority.create();
const [first, second, third] = [
  await root.issue({ names: ['first.test'] }),
  await root.issue({ names: ['second.test'] }),
  await root.issue({ names: ['third.test'] }),
];
const NODE = { node: { id: 'node', cluster: 'cluster' } };
const FACTORY = 'listener.main.server_ssl_socket_factory.';

function secret(name: string, content: object) {
  return { name, ...content };
}

/** Starts a listener `main` with the certificate `server` of a management server, which has the secrets `has`. */
async function start(
  t: Test,
  program: ProxyProgram,
  source: (plane: ControlPlane) => object,
  has: object[],
  options = {},
) {
  const plane = await startControlPlane(t);
  plane.set('secret', has as never);
  const certificate = { name: 'server', sds_config: source(plane) };
  const listener = {
    ...httpsListener('main', serverTls([], { tls_certificate_sds_secret_configs: [certificate] }), MANAGER),
    stat_prefix: 'main',
  };
  const config = bootstrap({ listeners: [listener], clusters: [plane.cluster()], extra: NODE });
  const baton = await startBaton(t, { ...program, config, ...options });
  return { baton, plane };
}

for (const protocol of ['sotw', 'delta'] as XdsProtocol[]) {
  besideEnvoy(
    `${protocol}: a listener serves the certificate of a server, and then those of its updates`,
    async (t, program) => {
      const initial = [secret('server', { tls_certificate: tlsCertificate(first) })];
      const { baton, plane } = await start(t, program, (plane) => plane.source(protocol), initial);
      const port = await baton.listenerPort('main');
      t.equal(await servedName(t, port), 'first.test');
      plane.set('secret', [secret('server', { tls_certificate: tlsCertificate(second) })]);
      await waitForName(t, port, 'second.test');
      await plane.waitForAck('secret');
      await baton.waitForStats({ [`${FACTORY}ssl_context_update_by_sds`]: 2, 'sds.server.update_success': 2 });
    },
  );

  besideEnvoy(
    `${protocol}: a secret that cannot be used is rejected, and the last good one serves`,
    async (t, program) => {
      const initial = [secret('server', { tls_certificate: tlsCertificate(first) })];
      const { baton, plane } = await start(t, program, (plane) => plane.source(protocol), initial);
      const port = await baton.listenerPort('main');
      const mismatch = { ...tlsCertificate(second), private_key: { inline_string: first.key } };
      plane.set('secret', [secret('server', { tls_certificate: mismatch })]);
      const { error } = await plane.waitForNack('secret');
      t.match(error, /key/i);
      t.notMatch(error, /BEGIN/);
      t.equal(await servedName(t, port), 'first.test');
      await baton.waitForStats({ 'sds.server.update_rejected': 1 });
      plane.set('secret', [secret('server', { tls_certificate: tlsCertificate(third) })]);
      await waitForName(t, port, 'third.test');
    },
  );
}

besideEnvoy(
  'a listener without its secret is used after initial_fetch_timeout, and closes connections until it arrives',
  async (t, program) => {
    const source = (plane: ControlPlane) => plane.source('sotw', { initial_fetch_timeout: '0.5s' });
    const { baton, plane } = await start(t, program, source, []);
    const port = await baton.listenerPort('main');
    await t.rejects(secureConnection(t, port, {}));
    await baton.waitForStats({
      [`${FACTORY}downstream_context_secrets_not_ready`]: 1,
      'sds.server.init_fetch_timeout': 1,
      'listener.main.downstream_cx_total': 1,
    });
    plane.set('secret', [secret('server', { tls_certificate: tlsCertificate(first) })]);
    await waitForName(t, port, 'first.test');
  },
);

besideEnvoy(
  'a server without a secret of its listener is not live before initial_fetch_timeout',
  async (t, program) => {
    const source = (plane: ControlPlane) => plane.source('sotw', { initial_fetch_timeout: '600s' });
    const { baton, plane } = await start(t, program, source, [], { wait: 'admin' });
    await plane.waitFor('a request for the secret', ({ names }) => names.includes('server'));
    t.equal((await baton.admin('/ready')).status, 503);
    t.match(JSON.parse((await baton.admin('/init_dump')).body), {
      unready_targets_dumps: [{ target_names: ['shared target SdsApi server'] }],
    });
    const { configs } = JSON.parse((await baton.admin('/config_dump?resource=dynamic_warming_secrets')).body);
    t.match(configs, [{ name: 'server', version_info: 'uninitialized', secret: { name: 'server' } }]);
    plane.set('secret', [secret('server', { tls_certificate: tlsCertificate(first) })]);
    await waitFor(async () => (await baton.admin('/ready')).status === 200, { what: 'a live server' });
    t.equal(await servedName(t, await baton.listenerPort('main')), 'first.test');
  },
);

besideEnvoy('/config_dump shows secrets without their keys', async (t, program) => {
  const initial = [secret('server', { tls_certificate: tlsCertificate(first) })];
  const { baton } = await start(t, program, (plane) => plane.source(), initial);
  const { body } = await baton.admin('/config_dump?resource=dynamic_active_secrets');
  t.match(JSON.parse(body).configs, [
    {
      name: 'server',
      version_info: '1',
      last_updated: /^20/,
      secret: {
        name: 'server',
        tls_certificate: {
          certificate_chain: { inline_string: first.chain },
          private_key: { inline_string: '[redacted]' },
        },
      },
    },
  ]);
  t.notOk((await baton.admin('/config_dump')).body.includes(first.key.slice(30, 60)));
});

besideEnvoy('connections to hosts fail while a cluster has no secret, and are never plain', async (t, program) => {
  const plane = await startControlPlane(t);
  const host = await startSecureHost(t, first, (_request, response) => response.end('secured'), {
    ca: root.certificate,
    requestCert: true,
  });
  const sds_config = plane.source('sotw', { initial_fetch_timeout: '0.5s' });
  const transport_socket = clientTls({ tls_certificate_sds_secret_configs: [{ name: 'client', sds_config }] });
  const config = bootstrap({
    listeners: [httpListener('main', 0, { route_config: routeAllTo('hosts') })],
    clusters: [plane.cluster(), staticCluster('hosts', host.port, { transport_socket })],
    extra: NODE,
  });
  const baton = await startBaton(t, { ...program, config });
  const url = `http://127.0.0.1:${await baton.listenerPort('main')}/`;
  const refused = await fetch(url);
  t.equal(refused.status, 503);
  t.match(await refused.text(), /remote connection failure/);
  await baton.waitForStats({ 'cluster.hosts.client_ssl_socket_factory.upstream_context_secrets_not_ready': 1 });
  plane.set('secret', [secret('client', { tls_certificate: tlsCertificate(second) })]);
  await waitFor(async () => (await fetch(url)).status === 200, { what: 'an answer of the host' });
  t.equal((host.sockets[0]!.getPeerCertificate().subject as { CN: string }).CN, 'second.test');
});

for (const protocol of ['sotw', 'delta'] as XdsProtocol[]) {
  besideEnvoy(
    `${protocol}: listeners, clusters and their secrets come over one aggregated stream`,
    async (t, program) => {
      const plane = await startControlPlane(t);
      const ads = { resource_api_version: 'V3', ads: {} };
      const host = await startSecureHost(t, first, (_request, response) => response.end('secured'));
      const common = {
        tls_certificate_sds_secret_configs: [{ name: 'server', sds_config: ads }],
        validation_context_sds_secret_config: { name: 'trust', sds_config: ads },
      };
      const manager = { route_config: routeAllTo('hosts') };
      const tls = serverTls([], common, { require_client_certificate: true });
      plane.set('listener', [{ ...httpsListener('main', tls, manager), stat_prefix: 'main' }]);
      const trust = { validation_context_sds_secret_config: { name: 'trust', sds_config: ads } };
      plane.set('cluster', [staticCluster('hosts', host.port, { transport_socket: clientTls(trust) })]);
      const all = (server: object) => [
        secret('server', { tls_certificate: server }),
        secret('trust', { validation_context: trustedCa(root) }),
      ];
      plane.set('secret', all(tlsCertificate(first)) as never);
      const config = bootstrap({ listeners: [], clusters: [plane.cluster()], extra: plane.ads(protocol) });
      const baton = await startBaton(t, { ...program, config });
      const port = await baton.listenerPort('main');
      const options = { rejectUnauthorized: false, cert: second.chain, key: second.key };
      const get = async () => {
        const socket = await secureConnection(t, port, options);
        const answered = new Promise<string>((resolve) => socket.once('data', (data) => resolve(String(data))));
        socket.write('GET / HTTP/1.1\r\nhost: a\r\n\r\n');
        const answer = await answered;
        const { CN } = socket.getPeerCertificate().subject;
        socket.destroy();
        return [CN, answer.slice(9, 12)];
      };
      t.strictSame(await get(), ['first.test', '200']);
      plane.set('secret', all(tlsCertificate(second)) as never);
      await waitFor(async () => (await get())[0] === 'second.test', { what: 'the second certificate' });
      t.strictSame(await get(), ['second.test', '200']);
    },
  );
}

t.test('a cluster with a rejected secret says so in /config_dump', async (t) => {
  const initial = [secret('server', { tls_certificate: tlsCertificate(first) })];
  const { baton, plane } = await start(t, { command: undefined }, (plane) => plane.source(), initial);
  plane.set('secret', [secret('server', { validation_context: trustedCa(root) })]);
  await plane.waitForNack('secret');
  const { body } = await baton.admin('/config_dump?resource=dynamic_active_secrets');
  t.match(JSON.parse(body).configs, [
    {
      version_info: '1',
      error_state: { details: /the secret 'server' has no tls_certificate/, version_info: '2' },
      client_status: 'NACKED',
    },
  ]);
});

t.test('contexts that share a secret change together, or not at all', async (t) => {
  const plane = await startControlPlane(t);
  const stranger = await (await Authority.create('Other Root')).issue({ names: ['user.test'] });
  const all = (server: object, trust: object) => {
    plane.set('secret', [
      secret('server', { tls_certificate: server }),
      secret('trust', { validation_context: trust }),
    ]);
  };
  all(tlsCertificate(first), trustedCa(root));
  const trust = { name: 'trust', sds_config: plane.source() };
  const names = Array.from({ length: 20 }, (_, index) => `listener-${index}`);
  const listeners = names.map((name, index) => {
    // Only the last one needs a trusted CA.
    const match_typed_subject_alt_names = [{ san_type: 'DNS', matcher: { suffix: '.test' } }];
    const combined = {
      default_validation_context: { match_typed_subject_alt_names },
      validation_context_sds_secret_config: trust,
    };
    const validation =
      index === names.length - 1
        ? { combined_validation_context: combined }
        : { validation_context_sds_secret_config: trust };
    const certificate = { name: 'server', sds_config: plane.source() };
    const common = { tls_certificate_sds_secret_configs: [certificate], ...validation };
    return httpsListener(name, serverTls([], common, { require_client_certificate: true }), MANAGER);
  });
  const config = bootstrap({ listeners, clusters: [plane.cluster()], extra: NODE });
  const baton = await startBaton(t, { config });
  const ports = await Promise.all(names.map((name) => baton.listenerPort(name)));
  const user = { ca: root.certificate, cert: second.chain, key: second.key };
  const served = async (name: string) => {
    for (const port of ports) t.equal((await httpsGet(port, { ...user, servername: name })).status, 200);
  };
  await served('first.test');
  all(tlsCertificate(third), trustedCa(root));
  await baton.waitForStats({ 'sds.server.update_success': 2 });
  await served('third.test');
  all(tlsCertificate(third), { allow_expired_certificate: true });
  await plane.waitForNack('secret');
  const foreign = { ca: root.certificate, servername: 'third.test', cert: stranger.chain, key: stranger.key };
  for (const port of ports) await t.rejects(httpsGet(port, foreign));
  await served('third.test');
});

t.test('handshakes do not fail while the certificate of a server is replaced', async (t) => {
  const initial = [secret('server', { tls_certificate: tlsCertificate(first) })];
  const { baton, plane } = await start(t, { command: undefined }, (plane) => plane.source('delta'), initial, {
    args: ['--concurrency', '2'],
  });
  const port = await baton.listenerPort('main');
  let isOver = false;
  const seen = new Set<string>();
  const clients = Array.from({ length: 8 }, async () => {
    while (!isOver) seen.add(await servedName(t, port));
  });
  for (let update = 0; update < 30; update++) {
    const pair = update % 2 === 0 ? second : first;
    plane.set('secret', [secret('server', { tls_certificate: tlsCertificate(pair) })]);
    await plane.waitForAck('secret');
  }
  isOver = true;
  await Promise.all(clients);
  t.strictSame(seen, new Set(['first.test', 'second.test']));
  const stats = await baton.stats();
  t.equal(stats['listener.main.ssl.connection_error'], 0);
  t.equal(stats[`${FACTORY}ssl_context_update_by_sds`], 31);
});
