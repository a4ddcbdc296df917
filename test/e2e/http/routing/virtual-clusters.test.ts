// Stats of virtual clusters, and of routes with a stat_prefix. All results are Envoy's.

import { join } from 'node:path';
import t, { type Test } from 'tap';
import { ResourceFile } from '../../dynamic/resource-file.js';
import { besideEnvoy, type ProxyProgram } from '../../harness/envoy.js';
import {
  bootstrap,
  type Config,
  fileAccessLog,
  freePort,
  httpListener,
  httpRequest,
  logLines,
  startBaton,
  startUpstream,
  staticCluster,
  tempDir,
  waitFor,
} from '../../harness/index.js';
import { routeConfig, startProxy } from '../proxy.js';

const ZEROS = {
  upstream_rq_retry: 0,
  upstream_rq_retry_limit_exceeded: 0,
  upstream_rq_retry_overflow: 0,
  upstream_rq_retry_success: 0,
  upstream_rq_timeout: 0,
  upstream_rq_total: 0,
};
const ROUTES = 'envoy.config.route.v3.RouteConfiguration';
const RETRY = { retry_on: '5xx', num_retries: 2, retry_back_off: { base_interval: '0.001s' } };

/** A host whose paths name the status of the answer; `/hang` has none, and `/once` fails at first. */
async function startHost(t: Test): Promise<number> {
  const failed = new Set<string>();
  const { port } = await startUpstream(t, (request, answer) => {
    const path = request.url!;
    if (path.includes('hang')) return;
    const isFirst = path.includes('once') && !failed.has(path);
    failed.add(path);
    answer.statusCode = isFirst ? 503 : Number(/\d{3}$/.exec(path)?.[0] ?? 200);
    answer.end();
  });
  return port;
}

const route = (prefix: string, stat_prefix: string, action: Config) => ({
  match: { prefix },
  stat_prefix,
  route: action,
});

function virtualHosts(): Config[] {
  const clusters = [
    { name: 'a.b', headers: [{ name: ':path', string_match: { prefix: '/a' } }] },
    { name: 'post', headers: [{ name: ':method', string_match: { exact: 'POST' } }] },
  ];
  const routes = [
    { match: { prefix: '/direct' }, stat_prefix: 'direct', direct_response: { status: 200 } },
    route('/a/none', 'none', { cluster_header: 'x-cluster' }),
    route('/a/retry', 'retry', { cluster: 'host', retry_policy: RETRY }),
    route('/a/hang', 'hang', { cluster: 'host', timeout: '0.1s' }),
    route('/a/try', 'hang', { cluster: 'host', retry_policy: { ...RETRY, num_retries: 1, per_try_timeout: '0.1s' } }),
    route('/a/down', 'down', { cluster: 'down' }),
    route('/', 'all.x', { cluster: 'host' }),
  ];
  return [
    { name: 'v.one', domains: ['*'], virtual_clusters: clusters, routes },
    { name: 'plain', domains: ['plain'], routes: [{ match: { prefix: '/' }, route: { cluster: 'host' } }] },
  ];
}

async function start(t: Test, program: ProxyProgram) {
  const log = join(tempDir(t), 'log');
  const access_log = [fileAccessLog(log, '%REQ(:PATH)% %VIRTUAL_CLUSTER_NAME%\n')];
  const proxy = await startProxy(t, {
    ...program,
    args: ['-l', 'warning', '--file-flush-interval-msec', '20'],
    listeners: { all: { route_config: routeConfig(virtualHosts()), access_log } },
    clusters: [staticCluster('host', await startHost(t)), staticCluster('down', await freePort())],
  });
  return { ...proxy, log };
}

besideEnvoy('requests count for their virtual cluster and for the stat_prefix of their route', async (t, program) => {
  const { baton, get, log } = await start(t, program);
  const named = ['route.direct', 'route.none', 'route.retry', 'route.hang', 'route.down', 'route.all.x'];
  const names = [...named, 'vcluster.a.b', 'vcluster.post', 'vcluster.other'];
  const before = names.flatMap((name) => Object.entries(ZEROS).map(([stat, value]) => [`${name}.${stat}`, value]));
  t.strictSame(await baton.stats('vhost.v.one.'), Object.fromEntries(before), 'all exist before the first request');
  t.strictSame(await baton.stats('vhost.plain.'), {}, 'a virtual host without virtual clusters has none');

  const paths = [
    '/direct',
    '/a/none',
    '/a/retry/503',
    '/a/retry/once',
    '/a/hang',
    '/a/try/hang',
    '/a/down',
    '/other/404',
  ];
  for (const path of [...paths, '/a/ok']) await get(path);
  await get('/posted', { method: 'POST', body: 'x' });
  await get('/plain', { headers: { host: 'plain' } });
  await waitFor(() => logLines(log).length === 11, { what: 'the log' });
  const changes = {
    'route.all.x': { upstream_rq_total: 3, upstream_rq_completed: 3, ...codes({ 200: 2, 404: 1 }) },
    'route.retry': {
      ...{ upstream_rq_total: 5, upstream_rq_completed: 2, ...codes({ 503: 1, 200: 1 }) },
      ...{ upstream_rq_retry: 3, upstream_rq_retry_limit_exceeded: 1, upstream_rq_retry_success: 1 },
    },
    'route.hang': {
      ...{ upstream_rq_total: 3, upstream_rq_completed: 2, ...codes({ 504: 2 }) },
      ...{ upstream_rq_retry: 1, upstream_rq_retry_limit_exceeded: 1, upstream_rq_timeout: 1 },
    },
    'route.down': { upstream_rq_completed: 1, ...codes({ 503: 1 }) },
    'vcluster.a.b': {
      ...{ upstream_rq_total: 9, upstream_rq_completed: 6, ...codes({ 200: 2, 503: 2, 504: 2 }) },
      ...{ upstream_rq_retry: 4, upstream_rq_retry_limit_exceeded: 2, upstream_rq_retry_success: 1 },
      ...{ upstream_rq_timeout: 1 },
    },
    'vcluster.post': { upstream_rq_total: 1, upstream_rq_completed: 1, ...codes({ 200: 1 }) },
    'vcluster.other': { upstream_rq_total: 1, upstream_rq_completed: 1, ...codes({ 404: 1 }) },
  };
  const after = Object.entries(changes).flatMap(([name, stats]) =>
    Object.entries(stats).map(([stat, value]) => [`${name}.${stat}`, value]),
  );
  t.strictSame(await baton.stats('vhost.v.one.'), Object.fromEntries([...before, ...after]));
  const { body } = await baton.admin('/stats?filter=vhost.*upstream_rq_time');
  const timed = body.match(/^\S+(?=\.upstream_rq_time:)/gm) ?? [];
  const counted = ['route.all.x', 'route.retry', 'vcluster.a.b', 'vcluster.other', 'vcluster.post'];
  t.strictSame(
    timed.sort(),
    counted.map((name) => `vhost.v.one.${name}`),
  );
  const clustersOf = Object.fromEntries(logLines(log).map((line) => line.split(' ')));
  t.match(clustersOf, {
    ...{ '/direct': '-', '/a/none': '-', '/a/ok': 'a.b', '/a/down': 'a.b' },
    ...{ '/posted': 'post', '/other/404': '-', '/plain': '-' },
  });
});

/** Returns the stats of responses with these statuses. */
function codes(counts: Readonly<Record<number, number>>): Record<string, number> {
  const stats: Record<string, number> = {};
  for (const [code, count] of Object.entries(counts)) {
    const sum = `upstream_rq_${code[0]}xx`;
    stats[`upstream_rq_${code}`] = count;
    stats[sum] = (stats[sum] ?? 0) + count;
  }
  return stats;
}

besideEnvoy('updated routes have the stats that they name, and only these', async (t, program) => {
  const file = new ResourceFile(tempDir(t), 'routes');
  const version = (name: string) => {
    const route = { match: { prefix: '/' }, stat_prefix: name, route: { cluster: 'host' } };
    const virtual_clusters = [{ name, headers: [{ name: 'x', present_match: true }] }];
    return { name: 'routes', virtual_hosts: [{ name: 'v', domains: ['*'], virtual_clusters, routes: [route] }] };
  };
  file.write(ROUTES, version('first'));
  const baton = await startBaton(t, {
    ...program,
    args: ['-l', 'warning', '--concurrency', '1', '--service-node', 'n', '--service-cluster', 'c'],
    config: bootstrap({
      listeners: [httpListener('in', 0, { rds: { route_config_name: 'routes', config_source: file.source } })],
      clusters: [staticCluster('host', await startHost(t))],
    }),
  });
  const port = await baton.listenerPort('in');
  const inFlight = httpRequest(port, '/hang').catch(() => {});
  await baton.waitForStat('vhost.v.route.first.upstream_rq_total', 1);
  file.write(ROUTES, version('second'));
  await baton.waitForStat('vhost.v.route.second.upstream_rq_total', 0);
  await httpRequest(port, '/');
  t.match(await baton.stats('vhost.v.'), {
    'route.second.upstream_rq_total': 1,
    'vcluster.second.upstream_rq_total': 0,
    'vcluster.other.upstream_rq_200': 1,
  });
  if (program.command === undefined) {
    await waitFor(async () => (await baton.stat('vhost.v.route.first.upstream_rq_total')) === undefined, {
      what: 'the removal of stats',
    });
  }
  await baton.kill('SIGKILL');
  await inFlight;
});

besideEnvoy('routes of scopes have stats too', async (t, program) => {
  const scope = (name: string) => {
    const virtual_clusters = [{ name: 'c', headers: [{ name: 'x', present_match: true }] }];
    const routes = [{ match: { prefix: '/' }, stat_prefix: 'all', route: { cluster: 'host' } }];
    const hosts = [{ name: `v-${name}`, domains: ['*'], virtual_clusters, routes }];
    return { name, key: { fragments: [{ string_key: name }] }, route_configuration: routeConfig(hosts, { name }) };
  };
  const scoped_routes = {
    name: 'scopes',
    scope_key_builder: { fragments: [{ header_value_extractor: { name: 'scope', index: 0 } }] },
    scoped_route_configurations_list: { scoped_route_configurations: [scope('a'), scope('b')] },
  };
  const { baton, get } = await startProxy(t, {
    ...program,
    listeners: { all: { scoped_routes } },
    clusters: [staticCluster('host', await startHost(t))],
  });
  await get('/', { headers: { scope: 'a', x: '1' } });
  await get('/', { headers: { scope: 'b' } });
  await baton.waitForStats({
    'vhost.v-a.vcluster.c.upstream_rq_total': 1,
    'vhost.v-a.route.all.upstream_rq_total': 1,
    'vhost.v-b.vcluster.c.upstream_rq_total': 0,
    'vhost.v-b.vcluster.other.upstream_rq_total': 1,
  });
});

t.test('a virtual cluster without headers, or with an invalid one, is refused', async (t) => {
  for (const [cluster, text] of [
    [{ name: 'a' }, 'virtual_clusters[0].headers: a virtual cluster needs headers'],
    [{ name: 'a', headers: [{ name: 'x', safe_regex_match: { regex: '(' } }] }, 'virtual_clusters[0].headers[0]'],
  ] as const) {
    const hosts = [{ name: 'v', domains: ['*'], virtual_clusters: [cluster] }];
    const listener = httpListener('in', 0, { route_config: routeConfig(hosts) });
    const config = bootstrap({ listeners: [listener], clusters: [] });
    const baton = await startBaton(t, { config, args: ['--mode', 'validate'], wait: 'spawned' });
    t.equal((await baton.exited).code, 1);
    t.match(baton.stderr, text);
  }
});
