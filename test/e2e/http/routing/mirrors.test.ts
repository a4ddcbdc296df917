// request_mirror_policies: copies of requests for other clusters. All results are Envoy's, except where a test says otherwise.

import type { Test } from 'tap';
import t from 'tap';
import { besideEnvoy, type ProxyProgram } from '../../harness/envoy.js';
import {
  bootstrap,
  type Config,
  connectRaw,
  freePort,
  httpListener,
  startBaton,
  startUpstream,
  staticCluster,
  waitFor,
} from '../../harness/index.js';
import { routeConfig, startProxy } from '../proxy.js';

interface Received {
  readonly url: string;
  readonly headers: Readonly<Record<string, unknown>>;
  readonly body: string;
}

async function startHost(t: Test) {
  const received: Received[] = [];
  const { port } = await startUpstream(t, (request, answer) => {
    const pieces: Buffer[] = [];
    request.on('data', (piece: Buffer) => pieces.push(piece));
    request.on('end', () => {
      received.push({ url: request.url!, headers: request.headers, body: Buffer.concat(pieces).toString() });
      answer.end(`from ${port}`);
    });
    request.on('error', () => {});
  });
  return { port, received };
}

const route = (prefix: string, policies: readonly Config[] | undefined, action: Config = {}) => ({
  match: { prefix },
  route: { cluster: 'host', ...(policies && { request_mirror_policies: policies }), ...action },
});

async function start(t: Test, program: ProxyProgram) {
  const host = await startHost(t);
  const mirror = await startHost(t);
  const routes = [
    route('/changed', [
      {
        cluster: 'mirror',
        host_rewrite_literal: 'copy.example:80',
        request_headers_mutations: [
          { append: { header: { key: 'x-added', value: '%REQ(x-in)%' } } },
          { remove: 'x-removed' },
        ],
      },
    ]),
    route('/header', [{ cluster_header: 'x-cluster' }]),
    route('/rewritten', [{ cluster: 'mirror' }], { prefix_rewrite: '/new' }),
    route('/none', [{ cluster: 'mirror', runtime_fraction: { default_value: { numerator: 0 } } }]),
    route('/down', [{ cluster: 'down' }, { cluster: 'mirror' }]),
    route('/', undefined),
  ];
  const policies = [{ cluster: 'mirror', disable_shadow_host_suffix_append: true }];
  const proxy = await startProxy(t, {
    ...program,
    listeners: {
      all: {
        route_config: routeConfig([{ name: 'all', domains: ['*'], routes, request_mirror_policies: policies }]),
      },
    },
    clusters: [
      staticCluster('host', host.port),
      staticCluster('mirror', mirror.port),
      staticCluster('down', await freePort()),
    ],
  });
  return { ...proxy, host, mirror };
}

besideEnvoy('copies have the request as its host gets it, with a host of their own', async (t, program) => {
  const { baton, get, host, mirror } = await start(t, program);
  const copyOf = async (path: string, options = {}) => {
    const before = mirror.received.length;
    t.equal((await get(path, options)).body, `from ${host.port}`, path);
    await waitFor(() => mirror.received.length > before, { what: `the copy of ${path}` });
    return mirror.received[before]!;
  };
  const given = { host: 'a.example:8080', 'x-in': '1', 'x-removed': '2' };

  const rewritten = await copyOf('/rewritten', { method: 'POST', body: 'hello', headers: given });
  t.match(rewritten, { url: '/new', body: 'hello' });
  t.match(rewritten.headers, { host: 'a.example-shadow:8080', 'x-in': '1', 'x-envoy-original-path': '/rewritten' });
  t.match(rewritten.headers, {
    'x-envoy-internal': 'true',
    'content-length': '5',
    'x-envoy-expected-rq-timeout-ms': '15000',
  });
  t.type(rewritten.headers['x-forwarded-for'], 'string');
  t.equal(host.received.at(-1)!.headers['host'], 'a.example:8080');
  t.equal(host.received.at(-1)!.headers['x-envoy-internal'], undefined);

  const changed = await copyOf('/changed', { headers: given });
  t.match(changed.headers, { host: 'copy.example:80', 'x-added': '1' });
  t.equal(changed.headers['x-removed'], undefined);
  t.equal(host.received.at(-1)!.headers['x-removed'], '2');

  const header = await copyOf('/header', { headers: { host: 'plain', 'x-cluster': 'mirror' } });
  t.equal(header.headers['host'], 'plain-shadow');
  t.equal((await copyOf('/down', { headers: given })).headers['host'], 'a.example-shadow:8080');
  t.equal((await copyOf('/', { headers: given })).headers['host'], 'a.example:8080', 'of the virtual host');

  const before = mirror.received.length;
  for (const path of ['/none', '/header']) t.equal((await get(path)).status, 200);
  await baton.waitForStats({
    'cluster.mirror.upstream_rq_total': 5,
    'cluster.mirror.internal.upstream_rq_200': 5,
    'cluster.down.internal.upstream_rq_503': 1,
    'cluster.host.upstream_rq_total': 7,
    'cluster.host.external.upstream_rq_200': 7,
  });
  t.equal(mirror.received.length, before);
});

besideEnvoy('a request without a host has no copy', async (t, program) => {
  const mirror = await startHost(t);
  const { baton, get } = await startProxy(t, {
    ...program,
    listeners: {
      all: {
        route_config: routeConfig([
          {
            name: 'all',
            domains: ['*'],
            request_mirror_policies: [{ cluster: 'mirror' }],
            routes: [
              { match: { prefix: '/none' }, route: { cluster: 'none' } },
              { match: { prefix: '/' }, route: { cluster: 'mirror' } },
            ],
          },
        ]),
      },
    },
    clusters: [staticCluster('none', []), staticCluster('mirror', mirror.port)],
  });
  t.equal((await get('/none')).status, 503);
  t.equal((await get('/some')).status, 200);
  await baton.waitForStats({ 'cluster.mirror.upstream_rq_total': 2, 'cluster.none.upstream_cx_none_healthy': 1 });
  t.strictSame([...new Set(mirror.received.map(({ url }) => url))], ['/some']);
});

besideEnvoy('the timeout of a copy begins when its request is complete', async (t, program) => {
  const host = await startHost(t);
  const mirror = await startHost(t);
  const stuck = await startUpstream(t, () => {});
  const timeout = '0.5s';
  const routes = [
    route('/slow', undefined, { cluster: 'stuck', timeout }),
    route('/', [{ cluster: 'mirror' }], { timeout }),
  ];
  const { baton, get, ports } = await startProxy(t, {
    ...program,
    listeners: {
      all: {
        route_config: routeConfig([{ name: 'all', domains: ['*'], routes }]),
      },
    },
    clusters: [
      staticCluster('host', host.port),
      staticCluster('mirror', mirror.port),
      staticCluster('stuck', stuck.port),
    ],
  });
  const connection = await connectRaw(t, ports['all']!);
  connection.write('POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\na');
  await baton.waitForStats({ 'cluster.mirror.upstream_rq_total': 1 });
  t.equal((await get('/slow')).status, 504, 'the timeout has passed');
  connection.write('b');
  await connection.readUntil(`from ${host.port}`);
  await waitFor(() => mirror.received.length > 0, { what: 'the copy' });
  t.equal(mirror.received[0]!.body, 'ab');
});

t.test('a mirror that reads nothing loses its copy, and the request continues', async (t) => {
  const stuck = await startUpstream(t, (request) => void request.pause());
  const host = await startHost(t);
  const { baton, get } = await startProxy(t, {
    listeners: {
      all: {
        route_config: routeConfig([{ name: 'all', domains: ['*'], routes: [route('/', [{ cluster: 'stuck' }])] }]),
      },
    },
    clusters: [staticCluster('host', host.port), staticCluster('stuck', stuck.port)],
  });
  const body = 'x'.repeat(24 * 1024 * 1024);
  t.equal((await get('/', { method: 'POST', body })).status, 200);
  t.equal(host.received[0]!.body.length, body.length);
  await baton.waitForStats({ 'cluster.host.retry_or_shadow_abandoned': 1 });
});

t.test('a policy needs one cluster that exists', async (t) => {
  for (const [policy, expected] of [
    [{}, 'Exactly one of cluster or cluster_header in request mirror policy need to be specified'],
    [{ cluster: 'nope' }, `unknown cluster 'nope'`],
    [
      { cluster: 'host', cluster_header: 'x' },
      `Only one of cluster 'host' or cluster_header 'x' in request mirror policy can be specified`,
    ],
  ] as const) {
    const config = bootstrap({
      listeners: [
        httpListener('a', 0, {
          route_config: routeConfig([{ name: 'all', domains: ['*'], routes: [route('/', [policy])] }]),
        }),
      ],
      clusters: [staticCluster('host', 1)],
    });
    const baton = await startBaton(t, { config, args: ['--mode', 'validate'], wait: 'spawned' });
    await baton.exited;
    t.match(baton.stderr, expected);
  }
});
