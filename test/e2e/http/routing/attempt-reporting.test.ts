// How the attempts of a request appear in logs, in headers to hosts and clients, and in stats.

import { join } from 'node:path';
import t from 'tap';
import {
  type Config,
  connectRaw,
  fileAccessLog,
  freePort,
  logLines,
  rawExchange,
  staticCluster,
  tempDir,
  waitFor,
} from '../../harness/index.js';
import { managerOf, routeConfig, routeTo, startProxy } from '../proxy.js';
import { response, startRawUpstream } from '../raw-upstream.js';

const LATER_MS = 150;

// The path determines how the host handles the first attempt of each request. It answers later attempts with 200.
const seen = new Set<string>();
const upstream = await startRawUpstream(t, ({ path, socket }) => {
  const isFirst = !seen.has(path);
  seen.add(path);
  if (!isFirst) setTimeout(() => socket.write(response(200, 'served')), path.startsWith('/late') ? LATER_MS : 0);
  else if (path.endsWith('/503')) socket.write(response(503));
  else if (path.endsWith('/409')) socket.write(response(409));
  else if (path.endsWith('/half')) socket.end('HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nhalf');
  else if (path.endsWith('/close')) socket.end();
  else if (path.endsWith('/hints')) socket.write(`HTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\n${response(503)}`);
});

const logFile = join(tempDir(t), 'log');
const FIELDS = {
  path: '%REQ(:PATH)%',
  status: '%RESPONSE_CODE%',
  flags: '%RESPONSE_FLAGS%',
  tries: '%UPSTREAM_REQUEST_ATTEMPT_COUNT%',
  first: '%RESPONSE_DURATION%',
  rest: '%RESPONSE_TX_DURATION%',
  host: '%UPSTREAM_HOST%',
  reason: '%UPSTREAM_TRANSPORT_FAILURE_REASON%',
};
const log = fileAccessLog(logFile);
const access_log = [
  { ...log, typed_config: { ...(log['typed_config'] as Config), log_format: { json_format: FIELDS } } },
];

const QUICKLY = { retry_back_off: { base_interval: '0.001s', max_interval: '0.002s' } };
const retried = (more: Config = {}): Config => ({ retry_policy: { retry_on: '5xx', ...QUICKLY, ...more } });
/** Kinds of failure. The cluster of each serves a single request, whose first attempt fails in that way. */
const counted = ['503', '409', 'hang', 'close'];
const proxy = await startProxy(t, {
  listeners: {
    main: managerOf(
      [
        routeTo({ prefix: '/half/' }, 'half', retried({ retry_on: 'connect-failure' })),
        routeTo({ prefix: '/guarded/' }, 'guarded', retried()),
        routeTo({ prefix: '/brief/' }, 'raw', { timeout: '0.2s' }),
        routeTo({ prefix: '/limited/' }, 'raw', { timeout: '10s', ...retried({ per_try_timeout: '0.2s' }) }),
        routeTo({ prefix: '/endless/' }, 'raw', { timeout: '0s', ...retried({ per_try_timeout: '2s' }) }),
        routeTo({ prefix: '/scarce/' }, 'raw', { timeout: '1.9s', ...retried({ per_try_timeout: '1s' }) }),
        ...counted.map((name) =>
          routeTo({ prefix: `/${name}/` }, name, retried({ retry_on: '5xx,retriable-4xx', per_try_timeout: '0.2s' })),
        ),
        routeTo({ prefix: '/informed/' }, 'informed', retried()),
        routeTo({ prefix: '/resting/' }, 'resting', {
          timeout: '0.2s',
          ...retried({ retry_back_off: { base_interval: '3600s', max_interval: '3600s' } }),
        }),
        routeTo({ prefix: '/once/' }, 'once', { timeout: '0.2s' }),
        routeTo({ prefix: '/broken/' }, 'broken'),
        routeTo({ prefix: '/closed/' }, 'closed'),
        routeTo({ prefix: '/overflowing/' }, 'overflowing'),
        routeTo({ prefix: '/' }, 'raw', retried()),
      ],
      {
        access_log,
        use_remote_address: true,
        internal_address_config: { cidr_ranges: [{ address_prefix: '127.0.0.1', prefix_len: 32 }] },
      },
    ),
    quiet: {
      route_config: routeConfig([
        {
          name: 'all',
          domains: ['*'],
          include_attempt_count_in_response: true,
          routes: [routeTo({ prefix: '/' }, 'raw')],
        },
      ]),
      http_filters: [
        {
          name: 'router',
          typed_config: {
            '@type': 'type.googleapis.com/envoy.extensions.filters.http.router.v3.Router',
            suppress_envoy_headers: true,
          },
        },
      ],
    },
  },
  clusters: [
    staticCluster('raw', upstream.port),
    staticCluster('half', [await freePort(), upstream.port]),
    ...['once', 'broken', 'informed', 'resting', ...counted].map((name) => staticCluster(name, upstream.port)),
    staticCluster('closed', await freePort()),
    staticCluster('overflowing', upstream.port, { circuit_breakers: { thresholds: [{ max_requests: 0 }] } }),
    staticCluster('guarded', upstream.port, { circuit_breakers: { thresholds: [{ max_retries: 0 }] } }),
  ],
  args: ['-l', 'warning', '--file-flush-interval-msec', '20'],
});

t.test('a log line describes the last attempt', async (t) => {
  t.equal((await proxy.get('/late/503')).status, 200);
  const { first, rest, ...line } = await logged('/late/503');
  t.match(line, { status: 200, tries: 2 });
  t.ok(Number(first) >= LATER_MS - 10, `the response started after ${first} ms`);
  t.ok(Number(rest) < LATER_MS, `and took ${rest} ms from then`);
  for (const path of ['/half/1', '/half/2']) {
    seen.add(path);
    t.equal((await proxy.get(path)).status, 200);
  }
  const both = [await logged('/half/1'), await logged('/half/2')];
  t.ok(
    both.some(({ tries }) => tries === 2),
    'one attempt was at the host that refuses connections',
  );
  for (const { reason, host } of both) t.match({ reason, host }, { reason: null, host: `127.0.0.1:${upstream.port}` });
});

t.test('a retry refused by a circuit breaker is flagged', async (t) => {
  t.equal((await proxy.get('/guarded/503')).status, 503);
  t.match(await logged('/guarded/503'), { status: 503, flags: 'UO', tries: 1 });
});

t.test('an internal request controls the router with headers that are not forwarded', async (t) => {
  const steering = {
    'x-envoy-upstream-rq-timeout-alt-response': 'yes',
    'x-envoy-upstream-stream-duration-ms': '10000',
    'x-envoy-hedge-on-per-try-timeout': 'true',
    'x-envoy-upstream-alt-stat-name': 'other',
    'x-envoy-upstream-rq-timeout-ms': '150',
    'x-envoy-upstream-rq-per-try-timeout-ms': '100',
  };
  t.match(await proxy.get('/brief/hang/1', { headers: steering }), { status: 204, body: '' });
  t.match(await logged('/brief/hang/1'), { status: 204, flags: 'UT' });
  const { head } = upstream.requests.at(-1)!;
  for (const name of Object.keys(steering)) t.notMatch(head, name);
  t.match(
    await proxy.get('/brief/hang/2'),
    { status: 504, body: 'upstream request timeout' },
    'without the headers a timeout is answered with 504',
  );
});

t.test('each attempt is sent with its own expected timeout', async (t) => {
  const expectedTimeouts = async (path: string) => {
    t.equal((await proxy.get(path)).status, 200);
    return upstream.requests
      .filter((request) => request.path === path)
      .map(({ head }) => Number(/\r\nx-envoy-expected-rq-timeout-ms: (\d+)/.exec(head)?.[1]));
  };
  t.same(await expectedTimeouts('/limited/hang'), [200, 200], 'the per-try timeout');
  t.same(await expectedTimeouts('/endless/503'), [2000, 2000], 'also without a request timeout');
  const [first, second] = await expectedTimeouts('/scarce/hang');
  t.equal(first, 1000);
  t.ok(second! >= 1 && second! <= 900, `${second} ms, the rest of the request timeout`);
  const [whole, rest] = await expectedTimeouts('/late/again/503');
  t.ok(whole === 15_000 && rest! <= whole, `${rest} of ${whole} ms`);
});

t.test('a host counts one failure for each attempt that it did not serve', async (t) => {
  for (const way of counted) t.equal((await proxy.get(`/${way}/${way}`)).status, 200, way);
  t.equal((await proxy.get('/closed/')).status, 503);
  t.equal((await proxy.get('/overflowing/')).status, 503);
  t.equal((await proxy.get('/once/hang')).status, 504);
  t.match((await rawExchange(proxy.port, 'GET /broken/half HTTP/1.1\r\nhost: a\r\n\r\n')).text, /half$/);
  const hosts = await countsOfHosts();
  for (const way of counted) t.match(hosts(way), { rq_success: 1, rq_error: 1 }, way);
  t.match(hosts('hang'), { rq_timeout: 1 });
  t.match(hosts('closed'), { rq_success: 0, rq_error: 1 }, 'no connection');
  t.equal(await proxy.baton.stat('cluster.closed.upstream_cx_destroy_remote'), 1);
  t.match(hosts('overflowing'), { rq_success: 0, rq_error: 1 }, 'the limit of requests counts as an error of its host');
  t.match(hosts('once'), { rq_success: 0, rq_error: 1, rq_timeout: 1 }, 'it did not answer');
  t.match(hosts('broken'), { rq_success: 1, rq_error: 0 }, 'its response was aborted after it had been counted');
});

t.test('response headers report the total duration and the attempt count', async (t) => {
  const { headers } = await proxy.get('/limited/slowly/hang');
  t.ok(Number(headers['x-envoy-upstream-service-time']) >= 190, 'the cancelled attempt took 200 ms');
  seen.add('/early');
  const early = await connectRaw(t, proxy.port);
  early.write('POST /early HTTP/1.1\r\nhost: a\r\ncontent-length: 5\r\n\r\nsome');
  t.notMatch(await early.readUntil('served'), 'x-envoy-upstream-service-time', 'not in an informational response');
  const quiet = await proxy.on('quiet', '/early');
  t.equal(quiet.headers['x-envoy-upstream-service-time'], undefined);
  t.equal(
    quiet.headers['x-envoy-attempt-count'],
    '1',
    'suppress_envoy_headers does not apply to include_attempt_count_in_response',
  );
});

t.test('informational responses are counted, and prevent retries', async (t) => {
  const { text } = await rawExchange(
    proxy.port,
    'GET /informed/hints HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n',
  );
  t.match(text, /^HTTP\/1\.1 503 /);
  t.equal(upstream.requests.filter(({ path }) => path === '/informed/hints').length, 1);
  for (const name of ['1xx', '103', '503']) {
    t.equal(await proxy.baton.stat(`cluster.informed.upstream_rq_${name}`), 1, name);
  }
});

t.test('a request that times out between two attempts is not a timeout of its cluster', async (t) => {
  t.equal((await proxy.get('/resting/503')).status, 504);
  t.match(await logged('/resting/503'), { status: 504, flags: 'UT' });
  t.equal(await proxy.baton.stat('cluster.resting.upstream_rq_timeout'), 0);
  t.equal(await proxy.baton.stat('cluster.resting.upstream_rq_504'), undefined);
  t.equal(await proxy.baton.stat('cluster.resting.retry.upstream_rq_503'), 1);
});

/** Returns the stats of the only host of a cluster. */
async function countsOfHosts(): Promise<(cluster: string) => Record<string, number>> {
  const { body } = await proxy.baton.admin('/clusters');
  const counts = (cluster: string) =>
    body.split('\n').flatMap((line) => {
      const [name, , field, value] = line.split('::');
      return name === cluster && value !== undefined ? [[field!, Number(value)] as const] : [];
    });
  return (cluster) => Object.fromEntries(counts(cluster));
}

/** Returns the log entry of the single request for a path. */
async function logged(path: string): Promise<Record<string, unknown>> {
  return waitFor(() => {
    const lines = logLines(logFile);
    return lines.map((line) => JSON.parse(line) as Record<string, unknown>).find((line) => line['path'] === path);
  });
}
