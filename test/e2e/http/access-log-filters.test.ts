// Access log filters: a log has a line for each stream that its filter accepts, and none for the others.

import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import {
  type BatonProcess,
  bootstrap,
  type Config,
  fileAccessLog,
  freePort,
  httpListener,
  httpRequest,
  logLines,
  rawExchange,
  startBaton,
  staticCluster,
  TRAILERS_CLUSTER,
  tcpListener,
  tempDir,
  waitFor,
} from '../harness/index.js';
import { openStream, startPeers } from '../tcp/stream.js';
import { answering, managerOf, routeTo, startProxy } from './proxy.js';
import { response, startRawUpstream } from './raw-upstream.js';

const HTTP = 'type.googleapis.com/envoy.extensions.filters.http';
const ARGS = ['-l', 'warning', '--file-flush-interval-msec', '20'];
const directory = tempDir(t);
const file = (name: string) => join(directory, name);
const lines = (name: string) => logLines(file(name));
const log = (name: string, filter: Config, format = '%REQ(:PATH)%\n') => ({
  ...fileAccessLog(file(name), format),
  filter,
});
/** Returns the lines of a log once the last stream, which its filter accepts, is in it: lines of one worker are in order. */
const upTo = (name: string, last: string) =>
  waitFor(() => (lines(name).at(-1) === last ? lines(name) : undefined), { what: `${last} in ${name}` });

const status = (op: string, default_value: number, runtime_key = 'log.status'): Config => ({
  status_code_filter: { comparison: { op, value: { default_value, runtime_key } } },
});
const duration = (default_value: number): Config => ({
  duration_filter: { comparison: { op: 'GE', value: { default_value, runtime_key: 'a' } } },
});
const header = (name: string, more: Config = { present_match: true }): Config => ({
  header_filter: { header: { name, ...more } },
});
const last = header(':path', { string_match: { exact: '/last' } });
const or = (...filters: Config[]): Config => ({ or_filter: { filters } });
const and = (...filters: Config[]): Config => ({ and_filter: { filters } });

const upstream = await startRawUpstream(t, ({ path, socket }) => {
  if (path === '/end') socket.end();
  else if (path === '/slow') setTimeout(() => socket.write(response(200, 'slow')), 100);
  else if (path === '/trailers')
    socket.write('HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1\r\na\r\n0\r\ngrpc-status: 5\r\n\r\n');
  else if (!path.startsWith('/hang')) socket.write(response(200, 'hello'));
});
const { ports, get } = await startProxy(t, {
  listeners: {
    main: managerOf(
      [
        answering({ path: '/direct' }, 'direct'),
        routeTo({ path: '/closed' }, 'closed'),
        routeTo({ path: '/hang' }, 'raw', { timeout: '0.05s' }),
        routeTo({ prefix: '/raw' }, 'raw', { prefix_rewrite: '/' }),
        routeTo({ path: '/last' }, 'raw'),
        ...['/', '/end', '/slow', '/trailers', '/health'].map((path) => routeTo({ path }, 'raw')),
      ],
      {
        http_protocol_options: { enable_trailers: true },
        http_filters: [
          {
            name: 'health',
            typed_config: {
              '@type': `${HTTP}.health_check.v3.HealthCheck`,
              pass_through_mode: false,
              headers: [{ name: ':path', string_match: { exact: '/health' } }],
            },
          },
          { name: 'router', typed_config: { '@type': `${HTTP}.router.v3.Router` } },
        ],
        access_log: [
          log('errors', or(status('GE', 400), last), '%REQ(:PATH)% %RESPONSE_CODE%\n'),
          log('slow', or(duration(50), last)),
          log('for-hours', or(duration(3_600_000), last)),
          log('no-checks', { not_health_check_filter: {} }),
          log('named', or(header('x-log'), last), 'a line that reads no head\n'),
          log('flagged', or({ response_flag_filter: {} }, last), '%REQ(:PATH)% %RESPONSE_FLAGS%\n'),
          log('broken', or({ response_flag_filter: { flags: ['UF', 'DC'] } }, last), '%REQ(:PATH)% %RESPONSE_FLAGS%\n'),
          log('grpc', or({ grpc_status_filter: { statuses: ['NOT_FOUND'] } }, last)),
          log('ends', and({ log_type_filter: { types: ['DownstreamEnd'] } }, or(status('EQ', 404, 'b'), last))),
          log('starts', { log_type_filter: { types: ['DownstreamStart'] } }),
          log('sampled', or({ runtime_filter: { runtime_key: 'log.share', percent_sampled: { numerator: 1 } } }, last)),
          fileAccessLog(file('all'), '%REQ(:PATH)%\n'),
        ],
      },
    ),
  },
  clusters: [staticCluster('raw', upstream.port, TRAILERS_CLUSTER), staticCluster('closed', await freePort())],
  args: ARGS,
});

t.test('each log has the requests that its filter accepts', async (t) => {
  // 0xff & 100: the remainder of 255 is 55; that of 0x00 is 0.
  const id = (digits: string) => ({ 'x-request-id': `${digits}-0000-4000-8000-000000000000` });
  await get('/direct', { headers: id('000000ff') });
  await get('/none', { headers: id('000000ff') });
  await get('/closed', { headers: id('00000000') });
  await get('/hang', { headers: { ...id('000000ff'), 'x-log': '' } });
  await get('/slow', { headers: id('000000ff') });
  await get('/trailers', { headers: id('000000ff') });
  await get('/health', { headers: id('000000ff') });
  await get('/raw/', { headers: { ...id('000000ff'), 'x-log': '1' } });
  await rawExchange(ports['main']!, 'nonsense\r\n\r\n');
  await get('/last', { headers: id('000000ff') });
  t.same(await upTo('errors', '/last 200'), ['/none 404', '/closed 503', '/hang 504', '- 400', '/last 200']);
  t.ok((await upTo('slow', '/last')).includes('/slow'));
  t.same(await upTo('for-hours', '/last'), ['/last']);
  t.same((await upTo('all', '/last')).length, 10, 'a log without a filter has all requests');
  t.same(
    await upTo('no-checks', '/last'),
    lines('all').filter((line) => line !== '/health'),
  );
  await waitFor(() => lines('named').length >= 3);
  t.equal(lines('named').length, 3, '/hang, /raw/ and /last');
  t.same(await upTo('flagged', '/last -'), ['/none NR', '/closed UF', '/hang UT', '- DPE', '/last -']);
  t.same(await upTo('broken', '/last -'), ['/closed UF', '/last -']);
  t.same(await upTo('grpc', '/last'), ['/trailers', '/last']);
  t.same(await upTo('ends', '/last'), ['/none', '/last']);
  t.same(lines('starts'), [], 'only the ends of streams are logged');
  t.same(await upTo('sampled', '/last'), ['/closed', '/last']);
});

t.test('runtime changes thresholds and percentages of a running Baton', async (t) => {
  const share = { runtime_filter: { runtime_key: 'log.share', percent_sampled: { numerator: 0 } } };
  const access_log = [
    log('bounded', or(status('GE', 404), last), '%REQ(:PATH)% %RESPONSE_CODE%\n'),
    log('share', or(share, last)),
  ];
  const baton = await startBaton(t, {
    config: bootstrap({
      listeners: [httpListener('web', 0, managerOf([answering({ path: '/last' }, 'a')], { access_log }))],
      clusters: [],
      extra: { layered_runtime: { layers: [{ name: 'operators', admin_layer: {} }] } },
    }),
    args: ARGS,
  });
  const port = await baton.listenerPort('web');
  const modify = async (query: string) =>
    t.equal((await baton.admin(`/runtime_modify?${query}`, { method: 'POST' })).body, 'OK\n');
  const both = async (name: string) => {
    await httpRequest(port, name);
    await httpRequest(port, '/last');
  };
  await both('/none/1');
  await modify('log.status=500&log.share=100');
  await both('/none/2');
  await modify('log.status=&log.share=');
  await both('/none/3');
  await waitFor(() => lines('bounded').length >= 5 && lines('share').length >= 4, { what: 'all lines' });
  t.same(lines('bounded'), ['/none/1 404', '/last 200', '/last 200', '/none/3 404', '/last 200']);
  t.same(lines('share'), ['/last', '/none/2', '/last', '/last']);
  await baton.stop();
});

t.test('connection logs and the admin access log have filters too', async (t) => {
  const peers = await startPeers(t);
  const failed = { response_flag_filter: { flags: ['UF'] } };
  const admin = and(header(':path', { string_match: { prefix: '/st' } }), status('EQ', 200, 'c'));
  const baton = await startBaton(t, {
    config: bootstrap({
      listeners: [
        tcpListener('good', 0, {
          cluster: 'peers',
          access_log: [fileAccessLog(file('connections')), log('tcp', failed, '%UPSTREAM_CLUSTER%\n')],
        }),
        tcpListener('bad', 0, {
          cluster: 'closed',
          access_log: [
            log('tcp', and(failed, { log_type_filter: { types: ['TcpConnectionEnd'] } }), '%UPSTREAM_CLUSTER%\n'),
          ],
        }),
      ],
      clusters: [staticCluster('peers', peers.port), staticCluster('closed', await freePort())],
      extra: {
        admin: {
          address: { socket_address: { address: '127.0.0.1', port_value: 0 } },
          access_log: [log('admin', admin, '%REQ(:PATH)% %RESPONSE_CODE%\n')],
        },
      },
    }),
    args: ARGS,
  });
  const client = await openStream(t, await baton.listenerPort('good'));
  const server = await peers.next();
  client.end();
  server.end();
  await waitFor(() => lines('connections').length === 1);
  await openStream(t, await baton.listenerPort('bad')).catch(() => {});
  await waitFor(() => lines('tcp').length > 0);
  t.same(lines('tcp'), ['closed']);
  await baton.admin('/ready');
  await baton.admin('/stx');
  await baton.admin('/stats?filter=none');
  await waitFor(() => lines('admin').includes('/stats?filter=none 200'));
  t.notOk(
    lines('admin').some((line) => !line.startsWith('/st') || !line.endsWith(' 200')),
    lines('admin').join(),
  );
  await baton.stop();
});

t.test('a reload replaces a filter without losing a line', async (t) => {
  const config = (filter: Config) =>
    bootstrap({
      listeners: [
        httpListener(
          'web',
          0,
          managerOf([answering({ prefix: '/a' }, 'a')], { access_log: [log('reloaded', filter)] }),
        ),
      ],
      clusters: [],
    });
  const baton = await startBaton(t, { config: config(status('EQ', 200, 'd')), args: ARGS });
  const port = () => baton.listenerPort('web');
  await httpRequest(await port(), '/a/1');
  await httpRequest(await port(), '/none/1');
  writeFileSync(baton.configPath, JSON.stringify(config(status('EQ', 404, 'd'))));
  const { body } = await baton.admin('/config/reload?format=json&apply=true', { method: 'POST', deadlineMs: 60_000 });
  t.match(JSON.parse(body), { outcome: 'applied' });
  await httpRequest(await port(), '/a/2');
  await httpRequest(await port(), '/none/2');
  t.same(await upTo('reloaded', '/none/2'), ['/a/1', '/none/2']);
  await baton.stop();
});

t.test('unsupported filters are refused with their position', async (t) => {
  const regex = header('x', { string_match: { safe_regex: { regex: '(' } } });
  const text = `static_resources:
  listeners:
    - name: web
      address: { socket_address: { address: 127.0.0.1, port_value: 0 } }
      filter_chains:
        - filters:
            - name: tcp
              typed_config:
                "@type": type.googleapis.com/envoy.extensions.filters.network.tcp_proxy.v3.TcpProxy
                stat_prefix: tcp
                cluster: host
                access_log:
                  - name: log
                    filter: { metadata_filter: {} }
                    typed_config: &out { "@type": type.googleapis.com/envoy.extensions.access_loggers.stream.v3.StdoutAccessLog }
                  - name: log
                    filter:
                      and_filter:
                        filters:
                          - metadata_filter: { match_if_key_not_found: true }
                          - extension_filter: { name: cel }
                          - response_flag_filter: { flags: [XX] }
                          - ${JSON.stringify(regex)}
                    typed_config: *out
                  - name: log
                    filter: {}
                    typed_config: *out
  clusters:
    - { name: host }
admin:
  access_log:
    - name: log
      filter: ${JSON.stringify(regex)}
      typed_config: { "@type": type.googleapis.com/envoy.extensions.access_loggers.stream.v3.StdoutAccessLog }
`;
  const stderr = await refusal(t, text);
  const at = 'static_resources.listeners[0].filter_chains[0].filters[0].typed_config.access_log';
  const expected: [place: string, path: string, what: RegExp][] = [
    ['14:31', `${at}[0].filter.metadata_filter`, /no dynamic metadata/],
    ['20:29', `${at}[1].filter.and_filter.filters[0].metadata_filter`, /no dynamic metadata/],
    ['21:29', `${at}[1].filter.and_filter.filters[1].extension_filter`, /only expressions are implemented/],
    ['22:61', `${at}[1].filter.and_filter.filters[2].response_flag_filter.flags[0]`, /XX|one of/],
    ['26:29', `${at}[2].filter`, /filter_specifier|one of/],
  ];
  for (const [place, path, what] of expected) {
    const found = stderr.split('\n').find((line) => line.includes(`${path}:`));
    t.ok(found?.includes(`config.yaml:${place}: `), `${path} at ${place}: ${found ?? stderr}`);
    t.match(found, what, path);
  }
  t.match(stderr, /config\.yaml:33:\d+: admin\.access_log\[0\]\.filter\.header_filter\.header\.string_match.*regex/);
});

async function refusal(t: Test, config: string): Promise<string> {
  const baton: BatonProcess = await startBaton(t, { config, args: ['--mode', 'validate'], wait: 'spawned' });
  t.match(await baton.exited, { code: 1 });
  return baton.stderr;
}
