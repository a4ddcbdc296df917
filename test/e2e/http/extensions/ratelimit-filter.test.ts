// The rate limit filter: what its service is asked, and what its answers do.

import t from 'tap';
import { besideEnvoy, type ProxyProgram } from '../../harness/envoy.js';
import {
  bootstrap,
  type Config,
  connectRaw,
  fileAccessLog,
  HTTP2_CLUSTER,
  httpListener,
  httpRequest,
  logLines,
  ROUTER_FILTER,
  startBaton,
  startEchoUpstream,
  staticCluster,
  type Teardown,
  tempDir,
  waitFor,
} from '../../harness/index.js';
import { managerOf, startProxy } from '../proxy.js';
import { type RateLimitService, startRateLimitService } from './ratelimit-service.js';

const PACKAGE = 'type.googleapis.com/envoy.extensions.filters.http.ratelimit.v3';
const STATUSES = [
  { code: 'OK', current_limit: { requests_per_unit: 10, unit: 'MINUTE', name: 'per-min' }, limit_remaining: 7 },
  {
    code: 'OK',
    current_limit: { requests_per_unit: 5, unit: 'SECOND', unit_multiplier: 3 },
    limit_remaining: 3,
    duration_until_reset: '2.9s',
  },
  { code: 'OK', current_limit: { requests_per_unit: 500, unit: 'WEEK' }, limit_remaining: 300 },
  { code: 'OK' },
];
const over = (resetSeconds: number) => ({
  code: 'OVER_LIMIT',
  current_limit: { requests_per_unit: 5, unit: 'SECOND' },
  duration_until_reset: `${resetSeconds}.5s`,
});
const ANSWERS = {
  ok: {
    overall_code: 'OK',
    raw_body: Buffer.from('unused').toString('base64'),
    response_headers_to_add: [{ key: 'x-of-service', value: 'a' }],
    request_headers_to_add: [
      { key: 'x-limit', value: '1' },
      { key: 'X-Limit', value: '2' },
    ],
    dynamic_metadata: { user: 'me' },
  },
  over: {
    overall_code: 'OVER_LIMIT',
    raw_body: Buffer.from('<b>slow down</b>').toString('base64'),
    response_headers_to_add: [
      { key: 'x-of-service', value: 'a' },
      { key: 'x-of-service', value: 'b' },
      { key: 'content-type', value: 'text/html' },
    ],
    dynamic_metadata: { user: 'you' },
  },
  limits: { overall_code: 'OK', statuses: STATUSES },
  exceeded: { overall_code: 'OVER_LIMIT', statuses: [...STATUSES.slice(0, 1), over(2), over(9)] },
  two: { overall_code: 'OK', statuses: STATUSES.slice(0, 2) },
  bad: {
    overall_code: 'OK',
    response_headers_to_add: [
      { key: 'x bad', value: 'a' },
      { key: '', value: 'a' },
      { key: 'x-lines', value: 'a\r\nb: c' },
      { key: 'content-length', value: '1' },
      { key: 'x-good', value: 'é' },
    ],
    request_headers_to_add: [
      { key: ':path', value: '/other' },
      { key: 'host', value: 'other' },
      { key: 'transfer-encoding', value: 'chunked' },
      { key: 'x-good', value: 'yes' },
    ],
  },
};

const key = (descriptor_value: string) => ({ generic_key: { descriptor_value } });
const ANSWER = { request_headers: { header_name: 'x-answer', descriptor_key: 'answer' } };
const PATH = (...path: string[]) => ({ key: 'ns', path: path.map((part) => ({ key: part })) });

function filter(fields: Config = {}): Config {
  return {
    name: 'envoy.filters.http.ratelimit',
    typed_config: {
      '@type': `${PACKAGE}.RateLimit`,
      domain: 'apis',
      timeout: '10s',
      rate_limit_service: { transport_api_version: 'V3', grpc_service: { envoy_grpc: { cluster_name: 'limits' } } },
      ...fields,
    },
  };
}

const ofRoute = (fields: Config): Config => ({
  typed_per_filter_config: { 'envoy.filters.http.ratelimit': { '@type': `${PACKAGE}.RateLimitPerRoute`, ...fields } },
});
const to = (path: string, rate_limits: Config[], more: Config = {}): Config => ({
  match: { path },
  metadata: { filter_metadata: { ns: { r: 'of route' } } },
  route: { cluster: 'host', ...(rate_limits.length > 0 && { rate_limits }) },
  ...more,
});

const ROUTES: Config[] = [
  to('/answer', [{ actions: [ANSWER] }]),
  to('/two', [{ actions: [ANSWER], x_ratelimit_option: 'OFF' }, { actions: [key('z')] }]),
  to('/all', [
    {
      actions: [
        { source_cluster: {} },
        { destination_cluster: {} },
        { remote_address: {} },
        { masked_remote_address: { v4_prefix_mask_len: 8 } },
        { query_parameters: { query_parameter_name: 'q', descriptor_key: 'q' } },
        { query_parameters: { query_parameter_name: 'no', descriptor_key: 'no', skip_if_absent: true } },
        { header_value_match: { descriptor_value: 'v', headers: [{ name: 'x-a', present_match: true }] } },
        { query_parameter_value_match: { descriptor_value: 'v', query_parameters: [{ name: 'q' }] } },
        { metadata: { descriptor_key: 'dynamic', metadata_key: PATH('s') } },
        { metadata: { descriptor_key: 'route', metadata_key: PATH('r'), source: 'ROUTE_ENTRY' } },
        { metadata: { descriptor_key: 'cluster', metadata_key: PATH('c'), source: 'CLUSTER_ENTRY' } },
        { metadata: { descriptor_key: 'default', metadata_key: PATH('number'), default_value: 'd' } },
        {
          remote_address_match: {
            descriptor_value: 'near-%REQ(x-a)%',
            address_matcher: { ranges: [{ address_prefix: '127.0.0.0', prefix_len: 8 }] },
          },
        },
      ],
    },
  ]),
  to('/none', [{ actions: [{ request_headers: { header_name: 'x-none', descriptor_key: 'none' } }] }]),
  to('/empty', [
    { actions: [{ request_headers: { header_name: 'x-none', descriptor_key: 'n', skip_if_absent: true } }] },
  ]),
  to('/override', [
    { actions: [key('a')], limit: { dynamic_metadata: { metadata_key: PATH('limit') } } },
    { actions: [key('b')], limit: { dynamic_metadata: { metadata_key: PATH('s') } } },
    { actions: [key('c')], limit: { rate_limit: { requests_per_unit: 8, unit: 'MINUTE' } } },
  ]),
  to('/keys', [
    { actions: [key('off')], disable_key: 'off' },
    { actions: [key('on')], disable_key: 'on' },
    { actions: [key('later')], stage: 1 },
  ]),
  to('/host', []),
  to('/include', [{ actions: [key('route')] }], ofRoute({ vh_rate_limits: 'INCLUDE', domain: 'other' })),
  to('/ignore', [], ofRoute({ vh_rate_limits: 'IGNORE' })),
  to('/own', [{ actions: [key('unused')] }], {
    ...ofRoute({
      rate_limits: [
        { actions: [key('five')], hits_addend: { number: 5 } },
        { actions: [key('seven')], hits_addend: { format: '%DYNAMIC_METADATA(ns:number)%', is_negative_hits: true } },
        { actions: [key('invalid')], hits_addend: { format: '%REQ(x-a)%' } },
        { actions: [key('sent'), ANSWER], apply_on_stream_done: true, hits_addend: { format: '%RESPONSE_CODE%' } },
      ],
    }),
  }),
  { match: { path: '/direct' }, direct_response: { status: 204 } },
];

const METADATA = {
  name: 'metadata',
  typed_config: {
    '@type': 'type.googleapis.com/envoy.extensions.filters.http.set_metadata.v3.Config',
    metadata: [
      { metadata_namespace: 'ns', value: { s: 'text', number: 7, limit: { requests_per_unit: 42, unit: 'HOUR' } } },
    ],
  },
};
const HITS = {
  name: 'hits',
  typed_config: {
    '@type': 'type.googleapis.com/envoy.extensions.filters.http.set_filter_state.v3.Config',
    on_request_headers: [
      {
        object_key: 'envoy.ratelimit.hits_addend',
        format_string: { text_format_source: { inline_string: '%REQ(x-hits)%' } },
      },
      {
        object_key: 'envoy.ratelimit.hits_addend',
        factory_key: 'envoy.string',
        format_string: { text_format_source: { inline_string: '%REQ(x-text)%' }, omit_empty_values: true },
        skip_if_empty: true,
      },
    ],
  },
};
const share = (numerator: number) => ({ default_value: { numerator } });
const LISTENERS: Readonly<Record<string, Config>> = {
  main: filter(),
  shown: filter({ enable_x_ratelimit_headers: 'DRAFT_VERSION_03', enable_retry_after_header: true }),
  changed: filter({
    rate_limited_status: { code: 'ServiceUnavailable' },
    rate_limited_as_resource_exhausted: true,
    disable_x_envoy_ratelimited_header: true,
    response_headers_to_add: [{ header: { key: 'x-of-filter', value: '%REQ(x-answer)%' } }],
    stat_prefix: 'mine',
    metadata_namespace: 'ns',
  }),
  closed: filter({ failure_mode_deny: true, rate_limited_status: { code: 'OK' } }),
  hasty: filter({ timeout: '0.1s' }),
  late: filter({
    timeout: '0.1s',
    failure_mode_deny_percent: share(100),
    status_on_error: { code: 'ServiceUnavailable' },
  }),
  open: filter({ failure_mode_deny: true, failure_mode_deny_percent: share(0) }),
  observed: filter({ filter_enforced: share(0) }),
  off: filter({ filter_enabled: share(0) }),
  internal: filter({ request_type: 'internal' }),
  external: filter({ request_type: 'external' }),
  stage: filter({ stage: 1 }),
  own: filter({ rate_limits: [{ actions: [key('filter')] }] }),
};

async function start(t: Teardown, program: ProxyProgram) {
  const service = await startRateLimitService(t, ANSWERS);
  const host = await startEchoUpstream(t);
  const log = `${tempDir(t)}/log`;
  const format = '%RESPONSE_CODE% %RESPONSE_FLAGS% %RESPONSE_CODE_DETAILS% %DYNAMIC_METADATA(ns:user)%';
  const own = '%DYNAMIC_METADATA(envoy.filters.http.ratelimit:user)%';
  const virtualHost = { name: 'all', domains: ['*'], rate_limits: [{ actions: [key('host')] }], routes: ROUTES };
  const listeners = Object.entries(LISTENERS).map(([name, limits]) =>
    httpListener(name, 0, {
      access_log: [fileAccessLog(log, `%REQ(x-answer)% ${format} ${own}\n`)],
      route_config: { virtual_hosts: [virtualHost] },
      http_filters: [METADATA, HITS, limits, ROUTER_FILTER],
    }),
  );
  const cluster = staticCluster('host', host.port, { metadata: { filter_metadata: { ns: { c: 'of cluster' } } } });
  const baton = await startBaton(t, {
    ...program,
    args: ['--file-flush-interval-msec', '20', '--service-cluster', 'edge', '--service-node', 'n'],
    config: bootstrap({
      listeners,
      clusters: [cluster, staticCluster('limits', service.port, HTTP2_CLUSTER)],
      extra: {
        layered_runtime: { layers: [{ name: 's', static_layer: { 'ratelimit.off.http_filter_enabled': 0 } }] },
      },
    }),
  });
  const ask = async (listener: string, path: string, headers: Record<string, string> = {}) =>
    httpRequest(await baton.listenerPort(listener), path, { headers });
  return { ask, baton, log, service };
}

/** Returns the descriptors of the last question as `key=value,key=value`. */
function last({ questions }: RateLimitService): string[] {
  return (questions.at(-1)?.descriptors ?? []).map(({ entries = [] }) =>
    entries.map(({ key, value = '' }) => `${key}=${value}`).join(),
  );
}

besideEnvoy('the rate limit filter behaves as in Envoy', async (t, program) => {
  const { ask, baton, log, service } = await start(t, program);

  await t.test('answers change requests and responses, refuse requests, and are counted', async (t) => {
    const passed = await ask('main', '/answer', { 'x-answer': 'ok' });
    t.match(passed, { status: 200, headers: { 'x-of-service': 'a' } });
    t.match((JSON.parse(passed.body) as { headers: object }).headers, { 'x-limit': '1, 2' });
    t.match(await ask('main', '/answer', { 'x-answer': 'over' }), {
      status: 429,
      body: '<b>slow down</b>',
      headers: { 'x-of-service': 'a, b', 'content-type': 'text/html', 'x-envoy-ratelimited': 'true' },
    });
    const changed = await ask('changed', '/answer', { 'x-answer': 'over' });
    t.match(changed, { status: 503, headers: { 'x-of-filter': 'over' } });
    t.equal(changed.headers['x-envoy-ratelimited'], undefined);
    t.match(await ask('changed', '/answer', { 'x-answer': 'over', 'content-type': 'application/grpc' }), {
      status: 200,
      headers: { 'grpc-status': '8', 'grpc-message': '<b>slow down</b>' },
    });
    t.match(await ask('closed', '/answer', { 'x-answer': 'over' }), { status: 429 }, 'a status below 400 is replaced');
    t.match(await ask('observed', '/answer', { 'x-answer': 'over' }), {
      status: 200,
      headers: { 'x-envoy-ratelimited': 'true' },
    });
    await waitFor(() => logLines(log).length === 6, { what: 'six lines' });
    t.same(logLines(log), [
      'ok 200 - via_upstream - me',
      'over 429 RL request_rate_limited - you',
      'over 503 RL request_rate_limited you -',
      'over 200 RL request_rate_limited you -',
      'over 429 RL request_rate_limited - you',
      'over 200 - via_upstream - you',
    ]);
    await baton.waitForStats({
      'cluster.host.ratelimit.ok': 1,
      'cluster.host.ratelimit.over_limit': 3,
      'cluster.host.ratelimit.mine.over_limit': 2,
      'cluster.host.internal.upstream_rq_429': 3,
      'cluster.host.internal.upstream_rq_503': 2,
      'cluster.host.upstream_rq_429': 3,
    });
  });

  await t.test('a failing service lets requests through, unless they are to be refused', async (t) => {
    t.equal((await ask('main', '/answer', { 'x-answer': 'failing' })).status, 200);
    t.equal((await ask('hasty', '/answer', { 'x-answer': 'silent' })).status, 200);
    t.equal((await ask('main', '/answer', { 'x-answer': 'garbled' })).status, 200);
    t.match(await ask('closed', '/answer', { 'x-answer': 'failing' }), { status: 500, body: '' });
    t.equal((await ask('late', '/answer', { 'x-answer': 'silent' })).status, 503);
    t.equal((await ask('open', '/answer', { 'x-answer': 'failing' })).status, 200);
    await waitFor(() => logLines(log).length === 12, { what: 'six more lines' });
    t.same(logLines(log).slice(9, 11), [
      'failing 500 RLSE rate_limiter_error - -',
      'silent 503 RLSE rate_limiter_error - -',
    ]);
    await baton.waitForStats({ 'cluster.host.ratelimit.error': 6, 'cluster.host.ratelimit.failure_mode_allowed': 4 });
  });

  await t.test('responses describe the limits if the filter or a rate limit demands it', async (t) => {
    t.match((await ask('shown', '/answer', { 'x-answer': 'limits' })).headers, {
      'x-ratelimit-limit': '5, 10;w=60;name="per-min", 5;w=3, 500;w=604800',
      'x-ratelimit-remaining': '3',
      'x-ratelimit-reset': '2',
    });
    t.match((await ask('shown', '/answer', { 'x-answer': 'exceeded' })).headers, {
      'x-ratelimit-limit': '5, 10;w=60;name="per-min", 5;w=1, 5;w=1',
      'x-ratelimit-remaining': '0',
      'x-ratelimit-reset': '2',
      'retry-after': '9',
    });
    t.match((await ask('shown', '/two', { 'x-answer': 'two' })).headers, { 'x-ratelimit-limit': '5, 5;w=3' });
    t.notOk('x-ratelimit-limit' in (await ask('main', '/answer', { 'x-answer': 'limits' })).headers);
  });

  await t.test('the service gets the descriptors of the request', async (t) => {
    const asked = async (...of: Parameters<typeof ask>) => {
      service.questions.length = 0;
      await ask(...of);
      return last(service);
    };
    t.same(await asked('main', '/all?q=a%20b', { 'x-a': '1', 'x-hits': '9' }), [
      [
        'source_cluster=edge',
        'destination_cluster=host',
        'remote_address=127.0.0.1',
        'masked_remote_address=127.0.0.0/8',
        'q=a b',
        'header_match=v',
        'query_match=v',
        'dynamic=text',
        'route=of route',
        'cluster=of cluster',
        'default=d',
        'remote_address_match=near-1',
      ].join(),
    ]);
    t.match(service.questions, [{ domain: 'apis', hits_addend: 9 }]);
    for (const text of ['Infinity', '1e400', '4294967296', '-1', 'x']) {
      await asked('main', '/host', { 'x-text': text });
      t.equal(service.questions[0]!.hits_addend, undefined, `the hits ${text}`);
    }
    t.same(await asked('main', '/none'), [], 'a descriptor that does not apply');
    t.same(await asked('main', '/empty'), [''], 'a descriptor without entries');
    t.same(await asked('main', '/keys'), ['generic_key=on']);
    t.same(await asked('stage', '/keys'), ['generic_key=later']);
    t.same(await asked('main', '/host'), ['generic_key=host']);
    t.same(await asked('main', '/include'), ['generic_key=route', 'generic_key=host']);
    t.equal(service.questions[0]!.domain, 'other');
    t.same(await asked('main', '/ignore'), []);
    t.same(await asked('own', '/keys'), ['generic_key=filter']);
    t.same(await asked('off', '/host'), []);
    t.same(await asked('internal', '/host'), []);
    t.same(await asked('external', '/host'), ['generic_key=host']);
    t.same(await asked('main', '/direct'), []);
    await asked('main', '/override');
    t.same(
      service.questions[0]!.descriptors.map(({ limit }) => limit),
      [{ requests_per_unit: 42, unit: 'HOUR' }, undefined, { requests_per_unit: 8, unit: 'MINUTE' }],
    );
  });

  await t.test('rate limits of a route have hits, and may apply when the stream has ended', async (t) => {
    service.questions.length = 0;
    await ask('main', '/own', { 'x-answer': 'over', 'x-a': 'none' });
    await waitFor(() => service.questions.length === 2, { what: 'two questions' });
    const [now, end] = service.questions;
    t.same(now!.descriptors, [
      { entries: [{ key: 'generic_key', value: 'five' }], hits_addend: { value: 5 } },
      { entries: [{ key: 'generic_key', value: 'seven' }], hits_addend: { value: 7 }, is_negative_hits: true },
    ]);
    t.same(end!.descriptors, [
      {
        entries: [
          { key: 'generic_key', value: 'sent' },
          { key: 'answer', value: 'over' },
        ],
        hits_addend: { value: 200 },
      },
    ]);
  });

  await t.test('fields that cannot be added are left out', { skip: program.command !== undefined }, async (t) => {
    const answer = await ask('main', '/answer', { 'x-answer': 'bad' });
    t.equal(answer.status, 200);
    t.equal(answer.headers['x-good'], Buffer.from('é').toString('latin1'));
    t.notOk('x-lines' in answer.headers);
    const { headers, url } = JSON.parse(answer.body) as { headers: Record<string, string>; url: string };
    t.match([url, headers['x-good'], headers['transfer-encoding']], ['/answer', 'yes', undefined]);
  });
});

besideEnvoy('the metadata of a call at the end of a request is of this request', async (t, program) => {
  const service = await startRateLimitService(t, {});
  const host = await startEchoUpstream(t);
  const envoy_grpc = { cluster_name: 'limits' };
  const initial_metadata = [{ key: 'x-user', value: '%REQ(x-user)%' }];
  const limits = filter({
    rate_limit_service: { transport_api_version: 'V3', grpc_service: { envoy_grpc, initial_metadata } },
  });
  const routes = [to('/', [{ actions: [key('end')], apply_on_stream_done: true }])];
  const { ports } = await startProxy(t, {
    ...program,
    listeners: { main: managerOf(routes, { http_filters: [limits, ROUTER_FILTER] }) },
    clusters: [staticCluster('host', host.port), staticCluster('limits', service.port, HTTP2_CLUSTER)],
  });
  // The second request begins while the first call has no connection.
  const request = (user: string) => `GET / HTTP/1.1\r\nhost: a\r\nx-user: ${user}\r\n\r\n`;
  const client = await connectRaw(t, ports['main']!);
  client.write(request('one') + request('two'));
  await waitFor(() => service.metadata.length === 2, { what: 'two calls' });
  t.same(service.metadata.map((fields) => fields['x-user']).sort(), ['one', 'two']);
});

t.test('mistakes are refused with their places', async (t) => {
  const limit = (more: Config) => ({ rate_limits: [{ actions: [key('a')], ...more }] });
  const mistakes = [
    limit({ stage: 1 }),
    limit({ hits_addend: { number: 1, format: '%BYTES_SENT%' } }),
    { rate_limits: [{ actions: [{ extension: { name: 'envoy.rate_limit_descriptors.expr' } }] }] },
    { timeout: '0s' },
  ];
  const listeners = mistakes.map((fields, index) =>
    httpListener(`l${index}`, 0, {
      route_config: { virtual_hosts: [{ name: 'all', domains: ['*'], routes: [] }] },
      http_filters: [filter(fields), ROUTER_FILTER],
    }),
  );
  const baton = await startBaton(t, {
    args: ['--mode', 'validate'],
    wait: 'spawned',
    config: bootstrap({ listeners, clusters: [staticCluster('limits', 1, HTTP2_CLUSTER)] }),
  });
  await baton.exited;
  t.match(baton.stderr, /rate_limits\[0\]\.stage: rate limits of a filter have none/);
  t.match(baton.stderr, /rate_limits\[0\]\.hits_addend: it must have either a number or a format/);
  t.match(baton.stderr, /actions\[0\]\.extension/);
  t.match(baton.stderr, /typed_config\.timeout: must be above 0/);
});
