// Dynamic forward proxies: the HTTP filter and the cluster. The expected results are those of Envoy 1.40.

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { Authority } from '../harness/certificates.js';
import { besideEnvoy, type ProxyProgram } from '../harness/envoy.js';
import {
  bootstrap,
  type Config,
  fileAccessLog,
  ROUTER_FILTER,
  startBaton,
  startUpstream,
  type Teardown,
  tcpListener,
  tempDir,
  waitFor,
} from '../harness/index.js';
import { managerOf, routeTo, startProxy } from '../http/proxy.js';
import { clientTls, httpsGet, startSecureHost, trustedCa } from '../tls/contexts.js';

const FORWARD_PROXY = 'type.googleapis.com/envoy.extensions.filters.http.dynamic_forward_proxy.v3';

function forwardProxy(cache: Config, more: Config = {}, config: Config = {}): Config {
  return {
    name: 'dfp',
    lb_policy: 'CLUSTER_PROVIDED',
    connect_timeout: '2s',
    cluster_type: {
      name: 'envoy.clusters.dynamic_forward_proxy',
      typed_config: {
        '@type': 'type.googleapis.com/envoy.extensions.clusters.dynamic_forward_proxy.v3.ClusterConfig',
        dns_cache_config: cache,
        ...config,
      },
    },
    ...more,
  };
}

function filter(cache: Config, more: Config = {}): Config {
  return { name: 'dfp', typed_config: { '@type': `${FORWARD_PROXY}.FilterConfig`, dns_cache_config: cache, ...more } };
}

function ofRoute(config: Config): Config {
  return { typed_per_filter_config: { dfp: { '@type': `${FORWARD_PROXY}.PerRouteConfig`, ...config } } };
}

const UNFILTERED = {
  typed_per_filter_config: {
    dfp: { '@type': 'type.googleapis.com/envoy.config.route.v3.FilterConfig', disabled: true },
  },
};

const FORMAT =
  '%REQ(:AUTHORITY)% %RESPONSE_CODE% %RESPONSE_FLAGS% %RESPONSE_CODE_DETAILS% %UPSTREAM_HOST% %UPSTREAM_HOST_NAME%\n';

async function start(t: Teardown, program: ProxyProgram, cache: Config, cluster: Config = {}) {
  const upstream = await startUpstream(t, ({ headers }, response) => void response.end(headers.host));
  const literal = { host_rewrite_literal: `localhost:${upstream.port}` };
  const log = join(tempDir(t), 'log');
  const { baton, get } = await startProxy(t, {
    ...program,
    args: ['-l', 'warning', '--file-flush-interval-msec', '20', '--concurrency', '2'],
    listeners: {
      in: managerOf(
        [
          routeTo({ prefix: '/unfiltered' }, 'dfp', {}, UNFILTERED),
          routeTo({ prefix: '/literal' }, 'dfp', {}, ofRoute(literal)),
          routeTo({ prefix: '/header' }, 'dfp', {}, ofRoute({ host_rewrite_header: 'x-host' })),
          routeTo({ prefix: '/other' }, 'other'),
          routeTo({ prefix: '/' }, 'dfp'),
        ],
        { http_filters: [filter(cache), ROUTER_FILTER], access_log: [fileAccessLog(log, FORMAT)] },
      ),
    },
    clusters: [
      forwardProxy(cache, cluster),
      {
        name: 'other',
        type: 'STATIC',
        load_assignment: {
          cluster_name: 'other',
          endpoints: [
            {
              lb_endpoints: [
                { endpoint: { address: { socket_address: { address: '127.0.0.1', port_value: upstream.port } } } },
              ],
            },
          ],
        },
      },
    ],
  });
  let asked = 0;
  return {
    baton,
    port: upstream.port,
    /** Returns the response and its line in the access log. */
    async ask(host: string, path = '/', headers: Record<string, string> = {}): Promise<[string, string]> {
      const { body, status } = await get(path, { headers: { host, ...headers } });
      asked++;
      const lines = () => readFileSync(log, 'utf8').split('\n');
      await waitFor(() => lines().length > asked);
      return [`${status} ${body}`, lines()[asked - 1]!];
    },
  };
}

besideEnvoy('each request is sent to the host that it names', async (t, program) => {
  const cache = { name: 'cache', dns_lookup_family: 'V4_ONLY' };
  const { ask, baton, port } = await start(t, program, cache);
  const own = `localhost:${port}`;
  const sent = (host: string) => [`200 ${host}`, `${host} 200 - via_upstream 127.0.0.1:${port} ${host}`];
  for (const host of [own, own, `127.0.0.1:${port}`, `LOCALHOST:${port}`]) t.same(await ask(host), sent(host), host);
  t.same(await ask('foo', '/literal'), sent(own));
  t.same(await ask('foo', '/header', { 'x-host': own }), sent(own));
  t.same(await ask(own, '/header'), sent(own));
  t.same((await ask('foo', '/other'))[0], '200 foo');
  t.same(await ask(own, '/unfiltered'), sent(own));
  const [, closed] = await ask('localhost');
  t.match(closed, /^localhost 503 UF .* 127\.0\.0\.1:80 localhost:80$/);
  await baton.waitForStats({
    'cluster.dfp.membership_total': 4,
    'dns_cache.cache.num_hosts': 4,
    'dns_cache.cache.host_added': 4,
    'dns_cache.cache.host_address_changed': 4,
    'dns_cache.cache.dns_query_attempt': 4,
    'dns_cache.cache.dns_query_success': 4,
    'dns_cache.cache.circuit_breakers.rq_pending_remaining': 1024,
    'dns_cache.cache.circuit_breakers.rq_pending_open': 0,
  });
  const clusters = (await baton.admin('/clusters')).body;
  t.match(clusters, `dfp::127.0.0.1:${port}::hostname::${own}`);
  t.match(clusters, 'dfp::127.0.0.1:80::hostname::localhost:80');
});

besideEnvoy('names that cannot be resolved are answered with 503', async (t, program) => {
  const { ask, baton } = await start(t, program, { name: 'cache', dns_lookup_family: 'V4_ONLY' });
  for (const host of ['localhost:', 'a..b', 'x..y']) {
    const [answer, line] = await ask(host);
    t.equal(answer, '503 DNS resolution failure', host);
    t.equal(line, `${host} 503 DF dns_resolution_failure{cares_failure:Misformatted_domain_name} - -`);
  }
  const [answer, line] = await ask('x..y', '/unfiltered');
  t.equal(answer, '503 no healthy upstream');
  t.equal(line, 'x..y 503 UH dns_resolution_failure{cares_failure:Misformatted_domain_name} - -');
  await baton.waitForStats({
    'dns_cache.cache.dns_query_failure': 3,
    'dns_cache.cache.num_hosts': 3,
    'cluster.dfp.membership_total': 0,
    'cluster.dfp.upstream_cx_none_healthy': 1,
  });
});

besideEnvoy('no more names are cached than max_hosts', async (t, program) => {
  const { ask, baton, port } = await start(t, program, { name: 'small', dns_lookup_family: 'V4_ONLY', max_hosts: 1 });
  t.equal((await ask(`localhost:${port}`))[0], `200 localhost:${port}`);
  t.same(await ask(`127.0.0.1:${port}`), ['503 DNS cache overflow', `127.0.0.1:${port} 503 - dns_cache_overflow - -`]);
  t.same(await ask(`127.0.0.2:${port}`, '/unfiltered'), [
    '503 no healthy upstream',
    `127.0.0.2:${port} 503 UH dns_cache_overflow - -`,
  ]);
  t.equal((await ask(`localhost:${port}`))[0], `200 localhost:${port}`);
  await baton.waitForStats({ 'dns_cache.small.host_overflow': 2, 'dns_cache.small.num_hosts': 1 });
});

besideEnvoy('a limit of waiting requests refuses further ones', async (t, program) => {
  const cache = { name: 'cache', dns_lookup_family: 'V4_ONLY', dns_cache_circuit_breaker: { max_pending_requests: 0 } };
  const { ask, baton, port } = await start(t, program, cache);
  const [answer, line] = await ask(`localhost:${port}`);
  t.equal(answer, '503 Dynamic forward proxy pending request overflow');
  t.equal(line, `localhost:${port} 503 - dynamic_forward_proxy_pending_request_overflow - -`);
  await baton.waitForStats({ 'dns_cache.cache.dns_rq_pending_overflow': 1 });
});

besideEnvoy('a host that was ejected gets no requests', async (t, program) => {
  const upstream = await startUpstream(t, (_, response) => void response.writeHead(500).end());
  const cache = { name: 'cache', dns_lookup_family: 'V4_ONLY' };
  const outlier_detection = { consecutive_5xx: 1, max_ejection_percent: 100, base_ejection_time: '600s' };
  const { baton, get } = await startProxy(t, {
    ...program,
    listeners: { in: managerOf([routeTo({ prefix: '/' }, 'dfp')], { http_filters: [filter(cache), ROUTER_FILTER] }) },
    clusters: [forwardProxy(cache, { outlier_detection, common_lb_config: { update_merge_window: '0s' } })],
  });
  const headers = { host: `localhost:${upstream.port}` };
  t.equal((await get('/', { headers })).status, 500);
  await baton.waitForStats({ 'cluster.dfp.outlier_detection.ejections_active': 1 });
  // The workers learn it a moment later.
  await waitFor(async () => (await get('/', { headers })).body === 'no healthy upstream');
});

besideEnvoy('objects of the request name host and port', async (t, program) => {
  const upstream = await startUpstream(t, ({ headers }, response) => void response.end(headers.host));
  const cache = { name: 'cache', dns_lookup_family: 'V4_ONLY' };
  const object = (object_key: string, text: string) => ({
    object_key,
    format_string: { text_format_source: { inline_string: text }, omit_empty_values: true },
    skip_if_empty: true,
  });
  const state = {
    name: 'state',
    typed_config: {
      '@type': 'type.googleapis.com/envoy.extensions.filters.http.set_filter_state.v3.Config',
      on_request_headers: [
        object('envoy.upstream.dynamic_host', '%REQ(x-host)%'),
        object('envoy.upstream.dynamic_port', '%REQ(x-port)%'),
      ],
    },
  };
  const { get } = await startProxy(t, {
    ...program,
    listeners: {
      in: managerOf([routeTo({ prefix: '/' }, 'dfp')], {
        http_filters: [state, filter(cache, { allow_dynamic_host_from_filter_state: true }), ROUTER_FILTER],
      }),
    },
    clusters: [forwardProxy(cache)],
  });
  const port = String(upstream.port);
  const ask = async (host: string, headers: Record<string, string>) =>
    (await get('/', { headers: { host, ...headers } })).body;
  t.equal(await ask('x..y', { 'x-host': `localhost:${port}` }), 'x..y');
  t.equal(await ask('x..y', { 'x-host': 'localhost', 'x-port': port }), 'x..y');
  t.equal(await ask('localhost', { 'x-port': port }), 'localhost');
  t.equal(await ask(`localhost:${port}`, { 'x-port': '7' }), `localhost:${port}`);
});

besideEnvoy('names are resolved in advance, and removed when they are not used', async (t, program) => {
  const { baton } = await start(t, program, {
    name: 'cache',
    dns_lookup_family: 'V4_ONLY',
    dns_refresh_rate: '1s',
    dns_min_refresh_rate: '1s',
    host_ttl: '1s',
    preresolve_hostnames: [{ address: 'localhost', port_value: 7 }],
  });
  await baton.waitForStats({ 'dns_cache.cache.host_added': 1, 'dns_cache.cache.host_removed': 1 });
  await baton.waitForStats({ 'dns_cache.cache.num_hosts': 0, 'cluster.dfp.membership_total': 0 });
});

t.test('configurations that Envoy refuses are refused', async (t) => {
  const refused = async (clusters: Config[], pattern: RegExp) => {
    const args = ['--mode', 'validate'];
    const baton = await startBaton(t, { args, wait: 'spawned', config: bootstrap({ listeners: [], clusters }) });
    t.equal((await baton.exited).code, 1);
    t.match(baton.stderr, pattern);
  };
  const cache = { name: 'cache' };
  await refused([forwardProxy(cache, { lb_policy: 'ROUND_ROBIN' })], /is not valid for a cluster of type DYNAMIC/);
  const options = { upstream_http_protocol_options: { auto_sni: true } };
  await refused([forwardProxy(cache, options)], /unless allow_insecure_cluster_options is set/);
  await refused([forwardProxy(cache, {}, { dns_cache_config: undefined })], /needs a dns_cache_config/);
  const other = { ...forwardProxy({ ...cache, max_hosts: 7 }), name: 'other' };
  await refused([forwardProxy(cache), other], /DNS cache 'cache' with different settings/);
});

besideEnvoy('a TCP proxy connects to the name in the SNI', async (t, program) => {
  const authority = await Authority.create();
  const host = await startSecureHost(t, await authority.issue({ names: ['localhost'] }), (_, response) =>
    response.end('secure'),
  );
  const cache = { name: 'cache', dns_lookup_family: 'V4_ONLY' };
  const sni = {
    name: 'sni',
    typed_config: {
      '@type': 'type.googleapis.com/envoy.extensions.filters.network.sni_dynamic_forward_proxy.v3.FilterConfig',
      dns_cache_config: cache,
      port_value: host.port,
    },
  };
  const listener = tcpListener('in', 0, { cluster: 'dfp' }) as { filter_chains: { filters: Config[] }[] };
  listener.filter_chains[0]!.filters.unshift(sni);
  const inspector = 'envoy.extensions.filters.listener.tls_inspector.v3.TlsInspector';
  const baton = await startBaton(t, {
    ...program,
    args: ['-l', 'warning'],
    config: bootstrap({
      listeners: [
        {
          ...listener,
          listener_filters: [{ name: 'tls', typed_config: { '@type': `type.googleapis.com/${inspector}` } }],
        },
      ],
      clusters: [forwardProxy(cache)],
    }),
  });
  const port = await baton.listenerPort('in');
  const { body } = await httpsGet(port, { servername: 'localhost', ca: authority.certificate });
  t.equal(body, 'secure');
  await t.rejects(httpsGet(port, { servername: 'x..y', ca: authority.certificate }));
  await baton.waitForStats({ 'dns_cache.cache.num_hosts': 2, 'cluster.dfp.membership_total': 1 });
});

besideEnvoy('the certificate of a host must have the name that the request asks for', async (t, program) => {
  const authority = await Authority.create();
  const host = await startSecureHost(t, await authority.issue({ names: ['localhost'] }), (_, response) =>
    response.end('secure'),
  );
  const cache = { name: 'cache', dns_lookup_family: 'V4_ONLY' };
  const { baton, get } = await startProxy(t, {
    ...program,
    listeners: { in: managerOf([routeTo({ prefix: '/' }, 'dfp')], { http_filters: [filter(cache), ROUTER_FILTER] }) },
    clusters: [forwardProxy(cache, { transport_socket: clientTls({ validation_context: trustedCa(authority) }) })],
  });
  t.equal((await get('/', { headers: { host: `localhost:${host.port}` } })).body, 'secure');
  const wrong = await get('/', { headers: { host: `127.0.0.1:${host.port}` } });
  t.equal(wrong.status, 503);
  await baton.waitForStats({ 'cluster.dfp.ssl.fail_verify_san': 1 });
  t.equal((await get('/', { headers: { host: 'localhost' } })).status, 503);
  t.match((await baton.admin('/clusters')).body, 'dfp::127.0.0.1:443::hostname::localhost:443');
});
