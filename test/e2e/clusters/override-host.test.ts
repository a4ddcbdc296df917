// override_host: requests go to the hosts that they name. The expected results are those of Envoy 1.40.

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { besideEnvoy, type ProxyProgram } from '../harness/envoy.js';
import {
  bootstrap,
  type Config,
  fileAccessLog,
  loopback,
  routeAllTo,
  startBaton,
  startUpstream,
  staticCluster,
  type Teardown,
  tempDir,
  waitFor,
} from '../harness/index.js';
import { startProxy } from '../http/proxy.js';

/** Answer with their names; that of `b` with 503 for /fail. */
const [a, b, c] = await Promise.all(
  ['a', 'b', 'c'].map((name) =>
    startUpstream(t, ({ url }, response) => {
      response.statusCode = url === '/fail' && name === 'b' ? 503 : 200;
      response.end(name);
    }),
  ),
);
const at = (upstream: typeof a) => `127.0.0.1:${upstream!.port}`;

const TYPE = 'type.googleapis.com/envoy.extensions.load_balancing_policies';

function policyOf(more: Config): Config {
  const typed_config = {
    '@type': `${TYPE}.override_host.v3.OverrideHost`,
    fallback_policy: {
      policies: [
        { typed_extension_config: { name: 'rr', typed_config: { '@type': `${TYPE}.round_robin.v3.RoundRobin` } } },
      ],
    },
    ...more,
  };
  return { load_balancing_policy: { policies: [{ typed_extension_config: { name: 'override', typed_config } }] } };
}

/** Returns a cluster of `a`, `b`, and `c`, which is unhealthy. */
function clusterOf(more: Config): Config {
  const lb_endpoints = [a, b, c].map((upstream, index) => ({
    endpoint: { address: loopback(upstream!.port) },
    health_status: index === 2 ? 'UNHEALTHY' : 'HEALTHY',
  }));
  return {
    ...staticCluster('hosts', 0, policyOf(more)),
    load_assignment: { cluster_name: 'hosts', endpoints: [{ lb_endpoints }] },
  };
}

function start(t: Teardown, program: ProxyProgram, more: Config, manager: Config = {}) {
  return startProxy(t, {
    ...program,
    args: ['-l', 'error', '--concurrency', '1'],
    listeners: {
      l: { route_config: routeAllTo('hosts', { retry_policy: { retry_on: '5xx', num_retries: 2 } }), ...manager },
    },
    clusters: [clusterOf(more)],
  });
}

const SOURCES = { override_host_sources: [{ header: 'x-o' }, { header: 'x-p' }] };

besideEnvoy('a request goes to the host that it names', async (t, program) => {
  const { get } = await start(t, program, SOURCES);
  const host = async (headers: Record<string, string>, path = '/') => (await get(path, { headers })).body;
  for (let count = 0; count < 3; count++) t.equal(await host({ 'x-o': at(b) }), 'b');
  t.equal(await host({ 'x-o': at(c) }), 'c', 'whatever its health is');
  t.equal(await host({ 'x-p': at(b) }), 'b', 'the second source');
  t.equal(await host({ 'x-o': 'junk', 'x-p': at(b) }), 'b');
  t.equal(await host({ 'x-o': `127.0.0.9:1,${at(b)}` }), 'b', 'a host that the cluster does not have');
  const others = new Set([await host({}), await host({ 'x-o': '127.0.0.9:1' })]);
  t.same([...others].sort(), ['a', 'b'], 'without a host that it has');
});

besideEnvoy('each retry goes to the next named host, and then to another one', async (t, program) => {
  const { baton, get } = await start(t, program, SOURCES);
  const host = async (headers: Record<string, string>) => (await get('/fail', { headers })).body;
  t.equal(await host({ 'x-o': `${at(b)}, ${at(c)}` }), 'c');
  t.equal(await host({ 'x-o': at(b), 'x-p': at(c) }), 'c', 'of all sources');
  t.equal(await host({ 'x-o': at(b) }), 'a');
  t.ok((await baton.stat('cluster.hosts.upstream_rq_retry'))! >= 3);
});

besideEnvoy('the address of the chosen host is stored in metadata', async (t, program) => {
  const file = join(tempDir(t), 'log');
  const access_log = [fileAccessLog(file, '%REQ(x-o)% %DYNAMIC_METADATA(chosen:host:at)%\n')];
  const selected_host_key = { key: 'chosen', path: [{ key: 'host' }, { key: 'at' }] };
  const { get } = await start(t, program, { ...SOURCES, selected_host_key }, { access_log });
  await get('/', { headers: { 'x-o': at(c) } });
  await get('/');
  const lines = () => readFileSync(file, 'utf8').trim().split('\n');
  await waitFor(() => lines().length === 2, { what: 'two lines' });
  t.equal(lines()[0], `${at(c)} ${at(c)}`);
  t.match(lines()[1], /^- 127\.0\.0\.1:\d+$/);
});

t.test('policies that cannot be used are refused', async (t) => {
  const wrong = (policy: string) => ({
    fallback_policy: {
      policies: [{ typed_extension_config: { name: 'p', typed_config: { '@type': `${TYPE}.${policy}`, ...SOURCES } } }],
    },
  });
  for (const [more, text] of [
    [{ override_host_sources: [{}] }, /override_host_sources\[0\]: it needs either a header or metadata/],
    [{ override_host_sources: [{ header: 'a b' }] }, /is not a valid header name/],
    [{ ...SOURCES, ...wrong('cluster_provided.v3.ClusterProvided') }, /ClusterProvided/],
  ] as const) {
    const config = bootstrap({ listeners: [], clusters: [clusterOf(more)] });
    const baton = await startBaton(t, { args: ['--mode', 'validate'], wait: 'spawned', config });
    await baton.exited;
    t.match(baton.stderr, text);
  }
});
