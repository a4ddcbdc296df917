// Operators of formats with real traffic: metadata and filter state from filters, bytes on the wire, tries and connections.

import { join } from 'node:path';
import t from 'tap';
import {
  type Config,
  fileAccessLog,
  freePort,
  logLines,
  rawExchange,
  staticCluster,
  tempDir,
  waitFor,
} from '../harness/index.js';
import { answering, headerOption, managerOf, routeTo, startProxy } from './proxy.js';
import { response, startRawUpstream } from './raw-upstream.js';

const HTTP = 'type.googleapis.com/envoy.extensions.filters.http';
const directory = tempDir(t);
const path = join(directory, 'log');

const OPERATORS = [
  'PATH',
  'METADATA(ROUTE:r:s)',
  'METADATA(VIRTUAL_HOST:v:s)',
  'METADATA(LISTENER:l:s)',
  'METADATA(LISTENER_FILTER_CHAIN:c:s)',
  'METADATA(CLUSTER:c:s)',
  'METADATA(UPSTREAM_HOST:h:s)',
  'METADATA(DYNAMIC:d)',
  'FILTER_STATE(state:PLAIN)',
  'UPSTREAM_FILTER_STATE(state:PLAIN)',
  'FILTER_CHAIN_NAME',
  'ACCESS_LOG_TYPE',
  'UPSTREAM_HOST_NAME',
  'UPSTREAM_HOSTS_ATTEMPTED',
  'UPSTREAM_CONNECTION_IDS_ATTEMPTED',
  'UPSTREAM_CONNECTION_ID',
  'DOWNSTREAM_WIRE_BYTES_RECEIVED',
  'DOWNSTREAM_WIRE_BYTES_SENT',
  'DOWNSTREAM_HEADER_BYTES_RECEIVED',
  'DOWNSTREAM_HEADER_BYTES_SENT',
  'UPSTREAM_WIRE_BYTES_SENT',
  'UPSTREAM_WIRE_BYTES_RECEIVED',
  'UPSTREAM_HEADER_BYTES_RECEIVED',
  'UPSTREAM_HEADER_BYTES_SENT',
  'COMMON_DURATION(DS_CX_BEG:DS_RX_BEG:ns)',
  'COMMON_DURATION(DS_RX_BEG:US_TX_BEG:ns)',
  'COMMON_DURATION(US_CX_BEG:US_CX_END:ns)',
  'COMMON_DURATION(US_RX_BEG:US_RX_BODY_BEG:ns)',
  'UPSTREAM_CONNECTION_POOL_READY_DURATION',
  'DOWNSTREAM_LOCAL_CLOSE_REASON',
  'DOWNSTREAM_DETECTED_CLOSE_TYPE',
  'UPSTREAM_DETECTED_CLOSE_TYPE',
];
type Line = Readonly<Record<string, unknown>>;

const log = (): Config => {
  const json_format = Object.fromEntries(OPERATORS.map((operator) => [operator, `%${operator}%`]));
  const base = fileAccessLog(path);
  return { ...base, typed_config: { ...(base['typed_config'] as Config), log_format: { json_format } } };
};
let read = 0;
/** Returns the next line of the log. */
async function nextLine(): Promise<Line> {
  const lines = await waitFor(() => (logLines(path).length > read ? logLines(path) : undefined));
  return JSON.parse(lines[read++]!) as Line;
}

const CHUNKED = 'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\n3\r\nyou\r\n0\r\n\r\n';
const BUSY = 'HTTP/1.1 503 Busy\r\ncontent-length: 0\r\n\r\n';
const upstream = await startRawUpstream(t, ({ path: target, socket, head }) => {
  if (target.startsWith('/chunked')) {
    socket.write(CHUNKED);
  } else if (target.startsWith('/echo')) socket.write(response(200, head));
  else if (target.startsWith('/503')) socket.write(BUSY);
  else if (target.startsWith('/reset')) socket.resetAndDestroy();
  else socket.write('HTTP/1.1 200 OK\r\ncontent-length: 5\r\nx-up: yes\r\n\r\nhello');
});
const closed = await freePort();
const metadata = (namespace: string, s: string): Config => ({ filter_metadata: { [namespace]: { s } } });
const host = (port: number, hostname: string, s: string): Config => ({
  endpoint: { hostname, address: { socket_address: { address: '127.0.0.1', port_value: port } } },
  metadata: metadata('h', s),
});
const cluster = (name: string, hosts: Config[]): Config => ({
  ...staticCluster(name, []),
  metadata: metadata('c', `of ${name}`),
  load_assignment: { cluster_name: name, endpoints: [{ lb_endpoints: hosts }] },
});
const setMetadata = (entries: Config[]): Config => ({
  name: 'metadata',
  typed_config: { '@type': `${HTTP}.set_metadata.v3.Config`, metadata: entries },
});
const stateRule = (object_key: string, inline_string: string, more: Config = {}): Config => ({
  object_key,
  factory_key: 'envoy.string',
  format_string: { text_format_source: { inline_string } },
  ...more,
});
const setState = (rules: Config[], more: Config = {}): Config => ({
  '@type': `${HTTP}.set_filter_state.v3.Config`,
  on_request_headers: rules,
  ...more,
});
const ROUTER = { name: 'router', typed_config: { '@type': `${HTTP}.router.v3.Router` } };

const proxy = await startProxy(t, {
  args: ['-l', 'warning', '--file-flush-interval-msec', '20', '--concurrency', '1'],
  listeners: {
    main: {
      route_config: {
        virtual_hosts: [
          {
            name: 'all',
            domains: ['*'],
            metadata: metadata('v', 'of the host'),
            routes: [
              routeTo({ prefix: '/503' }, 'tried', {
                retry_policy: {
                  retry_on: '5xx,connect-failure',
                  num_retries: 2,
                  retry_back_off: { base_interval: '0.001s' },
                },
              }),
              routeTo(
                { prefix: '/echo' },
                'up',
                {},
                {
                  metadata: { filter_metadata: { r: { s: 'here', bad: 'a\r\nx-injected: 1' } } },
                  request_headers_to_add: [
                    headerOption('x-meta', '%METADATA(ROUTE:r:s)% %DYNAMIC_METADATA(d:s)%'),
                    headerOption('x-state', '%FILTER_STATE(state:PLAIN)%'),
                    headerOption('x-param', '%QUERY_PARAM(a)%'),
                    headerOption('x-bad', '%METADATA(ROUTE:r:bad)%'),
                    headerOption('x-type', '%ACCESS_LOG_TYPE%'),
                  ],
                  response_headers_to_add: [headerOption('y-host', '%UPSTREAM_HOST_NAME% %UPSTREAM_METADATA(h:s)%')],
                },
              ),
              routeTo({ prefix: '/dead' }, 'dead'),
              routeTo({ prefix: '/' }, 'up', {}, { metadata: metadata('r', 'of the route') }),
            ],
          },
        ],
      },
      access_log: [log()],
      local_reply_config: {
        mappers: [
          {
            filter: { status_code_filter: { comparison: { op: 'GE', value: { default_value: 400 } } } },
            body_format_override: {
              text_format_source: { inline_string: '%LOCAL_REPLY_BODY%|%PATH(NQ)%|%METADATA(LISTENER:l:s)%' },
            },
          },
        ],
      },
      http_filters: [
        setMetadata([
          { metadata_namespace: 'd', value: { s: 'first', list: [1], deep: { a: 1 } } },
          { metadata_namespace: 'd', value: { s: 'ignored' } },
          { metadata_namespace: 'd', value: { list: [2], deep: { b: 2 } }, allow_overwrite: true },
        ]),
        {
          name: 'state',
          typed_config: setState([
            stateRule('state', 'of %REQ(:METHOD)%', { shared_with_upstream: 'ONCE' }),
            stateRule('fixed', 'one', { read_only: true }),
            stateRule('fixed', 'two'),
            stateRule('none', '%REQ(x-none)%', {
              skip_if_empty: true,
              format_string: { text_format_source: { inline_string: '%REQ(x-none)%' }, omit_empty_values: true },
            }),
          ]),
        },
        ROUTER,
      ],
    },
    state: managerOf(
      [
        answering({ prefix: '/route' }, 'plain', {
          typed_per_filter_config: { state: setState([stateRule('state', 'of the route')]) },
          response_headers_to_add: [
            headerOption('x-state', '%FILTER_STATE(state:PLAIN)%'),
            headerOption('x-fixed', '%FILTER_STATE(fixed)%'),
          ],
        }),
        answering({ prefix: '/', headers: [{ name: 'x-new', string_match: { exact: 'yes' } }] }, 'chosen again'),
        answering({ prefix: '/' }, 'first choice'),
      ],
      {
        http_filters: [
          {
            name: 'change',
            typed_config: {
              '@type': `${HTTP}.header_mutation.v3.HeaderMutation`,
              mutations: { request_mutations: [{ append: headerOption('x-new', 'yes') }] },
            },
          },
          {
            name: 'state',
            typed_config: setState(
              [stateRule('state', 'general'), stateRule('fixed', 'a', { read_only: true }), stateRule('fixed', 'b')],
              { clear_route_cache: true },
            ),
          },
          ROUTER,
        ],
      },
    ),
  },
  listenerOptions: { metadata: metadata('l', 'of the listener') },
  clusters: [
    cluster('up', [host(upstream.port, 'up.example:1', 'of the endpoint')]),
    cluster('tried', [host(upstream.port, '', 'of the endpoint')]),
    cluster('dead', [host(closed, '', 'dead')]),
  ],
  extra: {
    node: { id: 'n', cluster: 'c' },
  },
});

/** Sends a request to a listener. Returns all bytes of the response, which ends with `until`. */
async function exchange(request: string, until: RegExp, port = proxy.port): Promise<string> {
  return (await rawExchange(port, request, { until })).text;
}

t.test('a line has the metadata, the filter state and the bytes of its request', async (t) => {
  const request = 'GET /chunked?q HTTP/1.1\r\nhost: a\r\nx-a: alpha\r\n\r\n';
  const answer = await exchange(request, /0\r\n\r\n$/);
  const line = await nextLine();
  t.match(line, {
    PATH: '/chunked?q',
    'METADATA(ROUTE:r:s)': 'of the route',
    'METADATA(VIRTUAL_HOST:v:s)': 'of the host',
    'METADATA(LISTENER:l:s)': 'of the listener',
    'METADATA(LISTENER_FILTER_CHAIN:c:s)': null,
    'METADATA(CLUSTER:c:s)': 'of up',
    'METADATA(UPSTREAM_HOST:h:s)': 'of the endpoint',
    'FILTER_STATE(state:PLAIN)': 'of GET',
    'UPSTREAM_FILTER_STATE(state:PLAIN)': 'of GET',
    ACCESS_LOG_TYPE: 'DownstreamEnd',
    UPSTREAM_HOST_NAME: 'up.example:1',
    DOWNSTREAM_DETECTED_CLOSE_TYPE: 'Normal',
    UPSTREAM_DETECTED_CLOSE_TYPE: 'Normal',
  });
  t.strictSame(line['METADATA(DYNAMIC:d)'], { s: 'first', list: [1, 2], deep: { a: 1, b: 2 } }, 'merged as in Envoy');
  t.equal(line['DOWNSTREAM_WIRE_BYTES_RECEIVED'], request.length);
  t.equal(line['DOWNSTREAM_HEADER_BYTES_RECEIVED'], 'hosta'.length + 3 + 'x-aalpha'.length + 3);
  t.equal(line['DOWNSTREAM_WIRE_BYTES_SENT'], answer.length, 'all bytes, with the framing of the body');
  const fields = answer.indexOf('\r\n\r\n') + 2 - 'HTTP/1.1 200 OK\r\n'.length;
  t.equal(line['DOWNSTREAM_HEADER_BYTES_SENT'], fields);
  const sent = upstream.requests.at(-1)!.head.length + 4;
  t.equal(line['UPSTREAM_WIRE_BYTES_SENT'], sent);
  t.equal(line['UPSTREAM_HEADER_BYTES_SENT'], sent - 'GET /chunked?q HTTP/1.1\r\n'.length - 2);
  t.equal(line['UPSTREAM_WIRE_BYTES_RECEIVED'], CHUNKED.length);
  t.equal(line['UPSTREAM_HEADER_BYTES_RECEIVED'], 'transfer-encodingchunked'.length + 3);
  for (const operator of OPERATORS.filter((name) => name.includes('DURATION')))
    t.type(line[operator], 'number', operator);
});

t.test('the bytes of each pipelined request and of a local reply are its own', async (t) => {
  const post = 'POST /five HTTP/1.1\r\nhost: a\r\ncontent-length: 3\r\n\r\nabc';
  const chunked = 'POST /five HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n';
  const dead = 'GET /dead HTTP/1.1\r\nhost: a\r\n\r\n';
  const answer = await exchange(post + chunked + dead, /503.*of the listener$/s);
  const lines = [await nextLine(), await nextLine(), await nextLine()];
  t.strictSame(
    lines.map((line) => line['DOWNSTREAM_WIRE_BYTES_RECEIVED']),
    [post.length, chunked.length, dead.length],
  );
  const sent = lines.map((line) => line['DOWNSTREAM_WIRE_BYTES_SENT'] as number);
  t.equal(sent[0]! + sent[1]! + sent[2]!, answer.length);
  t.match(answer, /\|\/dead\|of the listener$/, 'formats of local replies have the operators too');
  t.match(lines[2], { UPSTREAM_HOSTS_ATTEMPTED: `127.0.0.1:${closed}`, UPSTREAM_CONNECTION_IDS_ATTEMPTED: null });
});

t.test('a line names all tries', async (t) => {
  await exchange('GET /503 HTTP/1.1\r\nhost: a\r\n\r\n', /\r\n\r\n$/);
  const line = await nextLine();
  const host = `127.0.0.1:${upstream.port}`;
  t.equal(line['UPSTREAM_HOSTS_ATTEMPTED'], `${host},${host},${host}`);
  t.match(line['UPSTREAM_CONNECTION_IDS_ATTEMPTED'], /^[0-9]+,[0-9]+,[0-9]+$/);
  t.equal(line['UPSTREAM_WIRE_BYTES_RECEIVED'], 3 * BUSY.length, 'the sum of all tries');
});

t.test('headers can be made with the operators, but not split', async (t) => {
  const { headers, body: text } = await proxy.get('/echo?a=b%0d%0ax-injected:%201');
  t.equal(headers['y-host'], 'up.example:1 of the endpoint');
  t.match(text, /x-meta: here first\r\n/i);
  t.match(text, /x-state: of GET\r\n/i);
  t.match(text, /x-param: b%0d%0ax-injected: 1\r\n/i);
  t.match(text, /x-type: NotSet/i);
  t.notMatch(text, /x-bad/i, 'a value with a line end is left out');
  t.notMatch(text, /\r\nx-injected/i);
  await nextLine();
});

t.test('filter state of a route follows that of the filter, and a read-only object stays', async (t) => {
  const { headers } = await proxy.on('state', '/route');
  t.equal(headers['x-state'], 'of the route');
  t.equal(headers['x-fixed'], '"a"');
});

t.test('clear_route_cache chooses the route by the headers of earlier filters', async (t) => {
  const { body: text } = await proxy.on('state', '/', { method: 'POST', body: 'a body' });
  t.equal(text, 'chosen again');
});
