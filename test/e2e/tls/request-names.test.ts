// Server names of connections to hosts that follow from requests (auto_sni), and the names that certificates must have.

import t from 'tap';
import { Authority } from '../harness/certificates.js';
import { besideEnvoy } from '../harness/envoy.js';
import {
  type Config,
  clusterHttpOptions,
  connectRaw,
  fileAccessLog,
  logLines,
  ROUTER_FILTER,
  startEchoUpstream,
  staticCluster,
  tempDir,
  waitFor,
} from '../harness/index.js';
import { managerOf, routeTo, startProxy } from '../http/proxy.js';
import { clientTls, trustedCa } from './contexts.js';
import { startNegotiatingHost } from './negotiating-host.js';

const root = await Authority.create();
const server = await root.issue({ names: ['server.test', '*.server.wild', { type: 'ip', value: '127.0.0.1' }] });
const TRUSTED = { validation_context: trustedCa(root) };

function named(options: Config): Config {
  return clusterHttpOptions({
    explicit_http_config: { http_protocol_options: {} },
    upstream_http_protocol_options: options,
  });
}

besideEnvoy('auto_sni: the host of the request is the server name, and selects the connection', async (t, program) => {
  const host = await startNegotiatingHost(t, server, {}, (request, answer) =>
    answer.end(String((request.socket as { servername?: string | false }).servername || '-')),
  );
  const tls = { transport_socket: clientTls({}, { sni: 'fixed.test' }) };
  const proxy = await startProxy(t, {
    ...program,
    listeners: {
      main: managerOf([
        routeTo({ prefix: '/rewritten' }, 'own', { host_rewrite_literal: 'rewritten.test' }),
        routeTo({ prefix: '/header' }, 'header'),
        routeTo({ prefix: '/' }, 'own'),
      ]),
    },
    clusters: [
      staticCluster('own', host.port, { ...tls, ...named({ auto_sni: true }) }),
      staticCluster('header', host.port, { ...tls, ...named({ auto_sni: true, override_auto_sni_header: 'x-sni' }) }),
    ],
  });
  for (const [path, headers, expected, connections] of [
    ['/', { host: 'a.test' }, 'a.test', 1],
    ['/', { host: 'a.test:8443' }, 'a.test', 1],
    ['/', { host: 'A.test' }, 'a.test', 1],
    ['/', { host: 'b.test' }, 'b.test', 2],
    ['/', { host: '1.2.3.4' }, 'fixed.test', 3],
    ['/', { host: '[::1]:80' }, 'fixed.test', 3],
    ['/rewritten', { host: 'a.test' }, 'rewritten.test', 4],
    ['/header', { host: 'a.test', 'x-sni': 'c.test:99' }, 'c.test', 5],
    ['/header', { host: 'a.test', 'x-sni': '' }, 'a.test', 6],
    ['/header', { host: 'a.test' }, 'a.test', 6],
    ['/', { host: 'a.test' }, 'a.test', 6],
  ] as const) {
    const { body } = await proxy.get(path, { headers });
    t.equal(body, expected, JSON.stringify([path, headers]));
    t.equal(host.sockets.length, connections, JSON.stringify([path, headers]));
  }
});

besideEnvoy('a server name that is too long fails the connection, and no other one', async (t, program) => {
  const host = await startNegotiatingHost(t, server);
  const cluster = staticCluster('own', host.port, { transport_socket: clientTls(), ...named({ auto_sni: true }) });
  const proxy = await startProxy(t, {
    ...program,
    listeners: { main: managerOf([routeTo({ prefix: '/' }, 'own')]) },
    clusters: [cluster],
  });
  const get = async (name: string) => (await proxy.get('/', { headers: { host: name } })).status;
  const long = `${'label.'.repeat(42)}test`;
  t.equal(await get(long.slice(-255)), 200);
  t.equal(await get(`a${long}`.slice(-256)), 503);
  t.equal(await get('a.test'), 200);
  t.equal(host.sockets.length, 2);
});

besideEnvoy('auto_san_validation: the certificate must have the name of the request', async (t, program) => {
  const host = await startNegotiatingHost(t, server);
  const log = `${tempDir(t)}/log`;
  const other = { san_type: 'DNS', matcher: { exact: 'other.test' } };
  const both = named({ auto_sni: true, auto_san_validation: true });
  const proxy = await startProxy(t, {
    ...program,
    args: ['-l', 'warning', '--file-flush-interval-msec', '20'],
    listeners: {
      main: managerOf(
        ['both', 'only', 'matching'].map((name) => routeTo({ prefix: `/${name}` }, name)),
        { access_log: [fileAccessLog(log, '%REQ(:AUTHORITY)% %UPSTREAM_TRANSPORT_FAILURE_REASON%\n')] },
      ),
    },
    clusters: [
      staticCluster('both', host.port, { transport_socket: clientTls(TRUSTED), ...both }),
      staticCluster('only', host.port, {
        transport_socket: clientTls(TRUSTED, { sni: 'fixed.test' }),
        ...named({ auto_san_validation: true }),
      }),
      staticCluster('matching', host.port, {
        transport_socket: clientTls({
          validation_context: { ...trustedCa(root), match_typed_subject_alt_names: [other] },
        }),
        ...both,
      }),
    ],
  });
  for (const [path, name, status] of [
    ['/both', 'server.test', 200],
    ['/both', 'server.test:99', 200],
    ['/both', 'SERVER.TEST', 200],
    ['/both', 'a.server.wild', 200],
    ['/both', 'a.b.server.wild', 503],
    ['/both', 'bad.test', 503],
    ['/both', '127.0.0.1', 200],
    ['/both', '1.2.3.4', 503],
    // A session with a host of the right name is not resumed for another name.
    ['/only', 'server.test', 200],
    ['/only', 'bad.test', 503],
    ['/only', 'bad.test', 503],
    ['/only', '127.0.0.1:80', 200],
    ['/matching', 'server.test', 503],
  ] as const) {
    t.equal((await proxy.get(path, { headers: { host: name } })).status, status, `${path} ${name}`);
  }
  await proxy.baton.waitForStats({
    'cluster.both.ssl.fail_verify_san': 3,
    'cluster.only.ssl.fail_verify_san': 2,
    'cluster.matching.ssl.fail_verify_san': 1,
  });
  const reasons = await waitFor(() => logLines(log).length === 13 && logLines(log), { what: 'the log' });
  const names = '[server.test,_*.server.wild,_127.0.0.1]';
  const failure = (what: string) =>
    `TLS_error:|268435581:SSL_routines:OPENSSL_internal:CERTIFICATE_VERIFY_FAILED:verify_cert_failed:_${what}:TLS_error_end`;
  t.equal(reasons[5], `bad.test ${failure(`verify_SAN_list,_expected_SANs:_[bad.test],_certificate_SANs:_${names}`)}`);
  t.equal(reasons[12], `server.test ${failure(`SAN_matcher,_certificate_SANs_are_${names}`)}`);
});

besideEnvoy(
  'auto_sni_san_validation: the certificate must have the server name, whatever other names match',
  async (t, program) => {
    const host = await startNegotiatingHost(t, server);
    const matching = (exact: string) => ({
      validation_context: {
        ...trustedCa(root),
        match_typed_subject_alt_names: [{ san_type: 'DNS', matcher: { exact } }],
      },
    });
    const rows: readonly [name: string, common: Config, tls: Config, options: Config, status: number][] = [
      ['right', TRUSTED, { sni: 'server.test' }, {}, 200],
      ['wrong', TRUSTED, { sni: 'fixed.test' }, {}, 503],
      ['none', TRUSTED, {}, {}, 200],
      ['replaced', matching('other.test'), { sni: 'server.test' }, {}, 200],
      ['useless', matching('server.test'), { sni: 'fixed.test' }, {}, 503],
      ['unnamed', matching('other.test'), {}, {}, 503],
      ['hosts', TRUSTED, { auto_host_sni: true, sni: 'fixed.test' }, {}, 200],
      ['requested', TRUSTED, { sni: 'fixed.test' }, named({ auto_sni: true }), 200],
    ];
    const proxy = await startProxy(t, {
      ...program,
      listeners: { main: managerOf(rows.map(([name]) => routeTo({ path: `/${name}` }, name))) },
      clusters: rows.map(([name, common, tls, options]) => {
        const address = { socket_address: { address: '127.0.0.1', port_value: host.port } };
        const endpoint = { address, hostname: 'a.server.wild' };
        return {
          ...staticCluster(name, host.port),
          transport_socket: clientTls(common, { auto_sni_san_validation: true, ...tls }),
          load_assignment: { cluster_name: name, endpoints: [{ lb_endpoints: [{ endpoint }] }] },
          ...options,
        };
      }),
    });
    for (const [name, , , , status] of rows) {
      t.equal((await proxy.get(`/${name}`, { headers: { host: 'server.test' } })).status, status, name);
    }
  },
);

besideEnvoy(
  'auto_san_validation applies to requests without a host, to tunnels that end here, and to calls of services',
  async (t, program) => {
    const host = await startNegotiatingHost(t, server);
    const authorized = {
      '@type': 'type.googleapis.com/envoy.extensions.filters.http.ext_authz.v3.ExtAuthz',
      http_service: { server_uri: { uri: 'https://service.test', cluster: 'host', timeout: '5s' } },
    };
    const proxy = await startProxy(t, {
      ...program,
      listeners: {
        main: managerOf([
          routeTo({ connect_matcher: {} }, 'host', {
            upgrade_configs: [{ upgrade_type: 'CONNECT', connect_config: {} }],
          }),
          routeTo({ prefix: '/' }, 'host'),
        ]),
        authorized: managerOf([routeTo({ prefix: '/' }, 'plain')], {
          http_filters: [{ name: 'envoy.filters.http.ext_authz', typed_config: authorized }, ROUTER_FILTER],
        }),
      },
      clusters: [
        staticCluster('plain', (await startEchoUpstream(t)).port),
        staticCluster('host', host.port, {
          transport_socket: clientTls(TRUSTED),
          ...named({ auto_sni: true, auto_san_validation: true }),
        }),
      ],
    });
    const firstLine = async (head: string) => {
      const client = await connectRaw(t, proxy.ports['main']!);
      client.write(`${head}\r\n\r\n`);
      await waitFor(() => client.received.includes('\r\n'), { what: 'an answer' });
      client.destroy();
      return client.received;
    };
    t.match(await firstLine('GET / HTTP/1.1\r\nhost:'), 'HTTP/1.1 503', 'no host');
    for (const [name, isNamed] of [
      ['server.test', true],
      ['bad.test', false],
    ] as const) {
      const status = isNamed ? 200 : 503;
      t.match(
        await firstLine(`CONNECT ${name}:443 HTTP/1.1\r\nhost: ${name}:443`),
        `HTTP/1.1 ${status}`,
        `CONNECT ${name}`,
      );
      const answer = await proxy.on('authorized', '/', { headers: { host: name } });
      t.equal(answer.status, isNamed ? 200 : 403, `ext_authz for ${name}`);
    }
    await proxy.baton.waitForStats({ 'cluster.host.ssl.fail_verify_san': 3 });
  },
);

t.test('names that clients invent do not keep more connections than the circuit breaker allows', async (t) => {
  const host = await startNegotiatingHost(t, server);
  const proxy = await startProxy(t, {
    listeners: { main: managerOf([routeTo({ prefix: '/' }, 'host')]) },
    clusters: [
      staticCluster('host', host.port, {
        transport_socket: clientTls(),
        circuit_breakers: { thresholds: [{ max_connections: 4 }] },
        ...named({ auto_sni: true }),
      }),
    ],
  });
  for (let index = 0; index < 40; index++) {
    t.equal((await proxy.get('/', { headers: { host: `h${index}.test` } })).status, 200);
  }
  const active = (await proxy.baton.stat('cluster.host.upstream_cx_active'))!;
  t.ok(active <= 4, `${active} connections`);
});
