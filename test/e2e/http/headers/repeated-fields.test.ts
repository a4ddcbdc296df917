// Repeated fields are matched line by line or as one joined value, wherever a header decides: a second line does not bypass a
// rule. All results are Envoy's.

import { join } from 'node:path';
import { besideEnvoy } from '../../harness/envoy.js';
import {
  type Config,
  connectRaw,
  fileAccessLog,
  logLines,
  type RawConnection,
  ROUTER_FILTER,
  staticCluster,
  tempDir,
  waitFor,
} from '../../harness/index.js';
import { ALWAYS, bucketOf, limiting, limitOf } from '../extensions/rate-limits.js';
import { answering, headerOption, managerOf, routeConfig, routeTo, startProxy } from '../proxy.js';
import { response, startRawUpstream } from '../raw-upstream.js';

const HTTP = 'type.googleapis.com/envoy.extensions.filters.http';
const ROUTES = [routeTo({ prefix: '/' }, 'host')];
const BACK_OFF = { base_interval: '0.001s', max_interval: '0.001s' };

const filter = (type: string, config: Config): Config => ({
  http_filters: [{ name: type, typed_config: { '@type': `${HTTP}.${type}`, ...config } }, ROUTER_FILTER],
});

interface Answer {
  readonly status: number;
  readonly head: string;
}

/** Sends one GET with these lines. */
async function get(connection: RawConnection, lines: readonly string[], path = '/'): Promise<Answer> {
  connection.write(`GET ${path} HTTP/1.1\r\nHost: a\r\n${lines.map((line) => `${line}\r\n`).join('')}\r\n`);
  const head = await connection.readUntil('\r\n\r\n');
  await connection.read(Number(/content-length: ([0-9]+)/i.exec(head)?.[1] ?? 0));
  return { status: Number(head.slice(9, 12)), head };
}

const roles = (...values: string[]) => values.map((value) => `x-role: ${value}`);
const agents = (...values: string[]) => values.map((value) => `user-agent: ${value}`);
const IS_ADMIN = { name: 'x-role', string_match: { exact: 'admin' } };
const IS_BOT = { name: 'user-agent', string_match: { exact: 'bot,other' } };

/** For requests with these lines: whether IS_ADMIN matches, IS_ADMIN inverted, and IS_BOT. */
const CASES: readonly (readonly [lines: string[], holds: boolean, inverted: boolean, bot: boolean])[] = [
  [roles('admin'), true, false, false],
  [roles('admin', 'user'), true, false, false],
  [roles('user', 'admin'), true, false, false],
  [roles('', 'admin', ''), true, false, false],
  [roles('user', 'guest'), false, true, false],
  [roles('admin,user'), false, true, false],
  [[...agents('bot', 'other'), ...roles('user')], false, true, true],
  [[...agents('bot', '', 'other'), ...roles('admin')], true, false, true],
  [agents('bot'), false, false, false],
];
const RULES = { holds: IS_ADMIN, inverted: { ...IS_ADMIN, invert_match: true }, bot: IS_BOT };

besideEnvoy('every header rule considers each value of a repeated field', async (t, program) => {
  const directory = tempDir(t);
  const upstream = await startRawUpstream(t, ({ path, socket }) => {
    socket.write(response(path === '/failing' ? 503 : 200));
  });
  const listeners: Record<string, Config> = {};
  const matchers = Object.entries(RULES);
  for (const [rule, header] of matchers) {
    listeners[`fault-${rule}`] = managerOf(
      ROUTES,
      filter('fault.v3.HTTPFault', {
        headers: [header],
        abort: { http_status: 418, percentage: { numerator: 100 } },
      }),
    );
    listeners[`health-${rule}`] = managerOf(
      [answering({ prefix: '/' }, '', { direct_response: { status: 418 } })],
      filter('health_check.v3.HealthCheck', { pass_through_mode: false, headers: [header] }),
    );
    listeners[`reply-${rule}`] = managerOf([], {
      local_reply_config: { mappers: [{ filter: { header_filter: { header } }, status_code: 418 }] },
    });
    listeners[`limit-${rule}`] = limiting(
      limitOf('limit', 10_000, {
        descriptors: [{ entries: [{ key: 'header_match', value: 'hit' }], token_bucket: bucketOf(1) }],
      }),
      [
        routeTo({ prefix: '/' }, 'host', {
          rate_limits: [{ actions: [{ header_value_match: { descriptor_value: 'hit', headers: [header] } }] }],
        }),
      ],
    );
    const retry_policy = { retry_on: '5xx', num_retries: 1, retry_back_off: BACK_OFF };
    listeners[`retry-${rule}`] = managerOf([
      routeTo({ prefix: '/' }, 'host', { retry_policy: { ...retry_policy, retriable_request_headers: [header] } }),
    ]);
    listeners[`log-${rule}`] = managerOf(ROUTES, {
      access_log: [
        { ...fileAccessLog(join(directory, rule), '%REQ(:PATH)%\n'), filter: { header_filter: { header } } },
      ],
    });
  }
  const { ports } = await startProxy(t, {
    ...program,
    listeners,
    clusters: [staticCluster('host', upstream.port)],
    args: ['-l', 'warning', '--file-flush-interval-msec', '20'],
  });

  for (const [at, [rule]] of matchers.entries()) {
    const connections: Record<string, RawConnection> = {};
    for (const site of ['fault', 'health', 'reply', 'limit', 'retry', 'log']) {
      connections[site] = await connectRaw(t, ports[`${site}-${rule}`]!);
    }
    const logged: string[] = [];
    // The bucket has a token for the first match.
    const first = CASES.find((each) => each[at + 1] === true)!;
    await get(connections['limit']!, first[0]);
    for (const [index, each] of CASES.entries()) {
      const [lines] = each;
      const isMatch = each[at + 1];
      const what = `${rule}: ${lines.join(', ')}`;
      const statusOf = async (site: string) => (await get(connections[site]!, lines)).status;
      t.equal((await statusOf('fault')) === 418, isMatch, `fault: ${what}`);
      t.equal((await statusOf('health')) === 200, isMatch, `health check: ${what}`);
      t.equal((await statusOf('reply')) === 418, isMatch, `local reply: ${what}`);
      t.equal((await statusOf('limit')) === 429, isMatch, `rate limit: ${what}`);
      const tries = upstream.requests.length;
      t.equal((await get(connections['retry']!, lines, '/failing')).status, 503);
      t.equal(upstream.requests.length - tries, isMatch ? 2 : 1, `retriable request: ${what}`);
      await get(connections['log']!, lines, `/${index}`);
      if (isMatch) logged.push(`/${index}`);
    }
    await waitFor(() => logLines(join(directory, rule)).length >= logged.length, { what: `${rule} in the log` });
    t.same(logLines(join(directory, rule)), logged, `access log: ${rule}`);
  }
});

besideEnvoy('responses with repeated fields are retried by each value', async (t, program) => {
  const upstream = await startRawUpstream(t, ({ path, socket }) => {
    const lines = decodeURIComponent(path.slice(1)).replaceAll('|', '\r\n');
    socket.write(response(200).replace('\r\n', `\r\n${lines}\r\n`));
  });
  const retriable = (header: Config) => ({
    retry_policy: { retry_on: 'retriable-headers', retriable_headers: [header], retry_back_off: BACK_OFF },
  });
  const listeners: Record<string, Config> = {};
  const rules = { ...RULES, vary: { name: 'vary', string_match: { exact: 'a,b' } } };
  for (const [rule, header] of Object.entries(rules)) {
    listeners[rule] = managerOf([routeTo({ prefix: '/' }, 'host', retriable(header))]);
  }
  const { ports } = await startProxy(t, {
    ...program,
    listeners,
    clusters: [staticCluster('host', upstream.port)],
  });
  const tries = async (rule: string, lines: readonly string[]) => {
    const before = upstream.requests.length;
    await get(await connectRaw(t, ports[rule]!), [], `/${encodeURIComponent(lines.join('|'))}`);
    return upstream.requests.length - before;
  };
  t.equal(await tries('holds', roles('user', 'admin')), 2);
  t.equal(await tries('holds', roles('user', 'guest')), 1);
  t.equal(await tries('inverted', roles('user', 'admin')), 1);
  t.equal(await tries('inverted', roles('user', 'guest')), 2);
  t.equal(await tries('bot', agents('bot', 'other')), 1, 'line by line in a response');
  t.equal(await tries('vary', ['vary: a', 'vary: b']), 2, 'one joined value in a response');
});

besideEnvoy('where a header is read, its first or its joined value is used', async (t, program) => {
  const heads: string[] = [];
  const upstream = await startRawUpstream(t, ({ head, socket }) => {
    heads.push(head);
    socket.write(response(200).replace('\r\n', '\r\nx-r: one\r\nx-r: two\r\nvary: one\r\nvary: \r\nvary: two\r\n'));
  });
  const limitBy = (header_name: string) =>
    limiting(
      limitOf('limit', 10_000, {
        descriptors: ['one', 'one,two'].map((value) => ({
          entries: [{ key: 'key', value }],
          token_bucket: bucketOf(1),
        })),
      }),
      [
        routeTo({ prefix: '/' }, 'host', {
          rate_limits: [{ actions: [{ request_headers: { header_name, descriptor_key: 'key' } }] }],
        }),
      ],
    );
  const { ports } = await startProxy(t, {
    ...program,
    listeners: {
      format: managerOf([
        routeTo(
          { prefix: '/' },
          'host',
          {},
          {
            request_headers_to_add: [headerOption('x-copy', '%REQ(x-h)%|%REQ(user-agent)%')],
            response_headers_to_add: [headerOption('x-copy', '%RESP(x-r)%|%RESP(vary)%')],
          },
        ),
      ]),
      'limit-x-h': limitBy('x-h'),
      'limit-user-agent': limitBy('user-agent'),
      'cluster-x-h': managerOf([{ match: { prefix: '/' }, route: { cluster_header: 'x-h' } }]),
      'cluster-user-agent': managerOf([{ match: { prefix: '/' }, route: { cluster_header: 'user-agent' } }]),
      'host-x-h': managerOf([routeTo({ prefix: '/' }, 'host', { host_rewrite_header: 'x-h' })]),
      'host-user-agent': managerOf([routeTo({ prefix: '/' }, 'host', { host_rewrite_header: 'user-agent' })]),
      tls: { route_config: routeConfig([{ name: 'a', domains: ['*'], require_tls: 'ALL', routes: ROUTES }]) },
      nodes: managerOf(
        ROUTES,
        filter('fault.v3.HTTPFault', {
          downstream_nodes: ['one', 'one,two'],
          abort: { http_status: 418, percentage: { numerator: 100 } },
        }),
      ),
      faults: managerOf(
        ROUTES,
        filter('fault.v3.HTTPFault', { abort: { header_abort: {}, percentage: { numerator: 100 } } }),
      ),
      cors: managerOf(
        [
          routeTo(
            { prefix: '/' },
            'host',
            {},
            {
              typed_per_filter_config: {
                'envoy.filters.http.cors': {
                  '@type': `${HTTP}.cors.v3.CorsPolicy`,
                  filter_enabled: ALWAYS,
                  allow_origin_string_match: [{ exact: 'http://a' }],
                },
              },
            },
          ),
        ],
        {
          http_filters: [
            { name: 'envoy.filters.http.cors', typed_config: { '@type': `${HTTP}.cors.v3.Cors` } },
            ROUTER_FILTER,
          ],
        },
      ),
      none: managerOf([]),
    },
    clusters: [staticCluster('host', upstream.port), staticCluster('one', upstream.port)],
  });
  const ask = async (listener: string, lines: readonly string[]) => {
    const connection = await connectRaw(t, ports[listener]!);
    const answer = await get(connection, lines);
    connection.destroy();
    return answer;
  };
  const twice = (name: string, ...values: string[]) => values.map((value) => `${name}: ${value}`);
  const copyIn = (head: string) => /^x-copy: (.*?)\r?$/im.exec(head)?.[1];

  const { head } = await ask('format', [...twice('x-h', 'one', 'two'), ...agents('', 'one', 'two')]);
  t.equal(copyIn(heads.at(-1)!), 'one|one,two', 'values formatted from a request');
  t.equal(copyIn(head), 'one|one,two', 'values formatted from a response');

  for (const name of ['x-h', 'user-agent']) {
    const one = name === 'x-h' ? 'one' : 'one,two';
    t.equal((await ask(`limit-${name}`, twice(name, one))).status, 200);
    t.equal((await ask(`limit-${name}`, twice(name, 'one', 'two'))).status, 429, `limit by ${name}`);
    t.equal((await ask(`limit-${name}`, twice(name, 'two', 'one'))).status, 200, `limit by ${name}`);
    const isFirst = name === 'x-h';
    t.equal(
      (await ask(`cluster-${name}`, twice(name, 'one', 'two'))).status,
      isFirst ? 200 : 503,
      `cluster by ${name}`,
    );
    t.equal((await ask(`cluster-${name}`, twice(name, '', 'one'))).status, isFirst ? 503 : 200, `cluster by ${name}`);
    await ask(`host-${name}`, twice(name, 'one', 'two'));
    t.match(heads.at(-1), isFirst ? /^host: one\r?$/im : /^host: one,two\r?$/im, `host by ${name}`);
  }

  const PROTO = 'x-forwarded-proto';
  for (const [values, status] of [
    [['https'], 200],
    [['https', 'http'], 301],
    [['http', 'https'], 301],
    [['https', 'https'], 301],
    [['https', ''], 200],
    [['', 'https'], 200],
    [['https,http'], 301],
  ] as const) {
    t.equal((await ask('tls', twice(PROTO, ...values))).status, status, `${PROTO}: ${values.join(' and ')}`);
  }

  const NODE = 'x-envoy-downstream-service-node';
  t.equal((await ask('nodes', twice(NODE, 'one', 'three'))).status, 200);
  t.equal((await ask('nodes', twice(NODE, 'one', 'two'))).status, 418);
  t.equal((await ask('nodes', twice(NODE, '', 'one'))).status, 418);
  const ABORT = 'x-envoy-fault-abort-request';
  t.equal((await ask('faults', twice(ABORT, '403', '404'))).status, 403);
  t.equal((await ask('faults', twice(ABORT, '', '404'))).status, 200);

  const allowed = async (...values: string[]) =>
    /^access-control-allow-origin: (.*?)\r$/im.exec((await ask('cors', twice('origin', ...values))).head)?.[1];
  t.equal(await allowed('http://a'), 'http://a');
  t.equal(await allowed('http://a', 'http://b'), undefined);
  t.equal(await allowed('', 'http://a'), 'http://a');

  const isGrpc = async (...values: string[]) => (await ask('none', twice('content-type', ...values))).status === 200;
  t.equal(await isGrpc('application/grpc'), true);
  t.equal(await isGrpc('application/grpc', 'text/plain'), false);
  t.equal(await isGrpc('', 'application/grpc', ''), true);
});
