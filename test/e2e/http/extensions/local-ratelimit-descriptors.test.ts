// Local rate limits with descriptors: requests with the same descriptor share a bucket, on all workers.

import t from 'tap';
import { besideEnvoy } from '../../harness/envoy.js';
import { type Config, startEchoUpstream, staticCluster } from '../../harness/index.js';
import { KeepAliveClient, tally } from '../keep-alive.js';
import { routeConfig, routeTo, startProxy } from '../proxy.js';
import { bucketOf, limiting, limitOf } from './rate-limits.js';

const host = await startEchoUpstream(t);
const BY_USER: Config = {
  actions: [
    { generic_key: { descriptor_value: 'api' } },
    { request_headers: { header_name: 'x-user', descriptor_key: 'user' } },
  ],
};
const ofUser = (user: string, tokens: number): Config => ({
  entries: [
    { key: 'generic_key', value: 'api' },
    { key: 'user', value: user },
  ],
  token_bucket: bucketOf(tokens),
});
const expensive: Config = {
  entries: [{ key: 'generic_key', value: 'expensive' }],
  token_bucket: { max_tokens: 2, fill_interval: '7200s' },
};
const descriptors = [ofUser('ann', 6), ofUser('bob', 3), expensive];

function described(prefix: string, tokens: number, more: Config = {}): Config {
  const limit = limitOf(prefix, tokens, { descriptors, ...more });
  const reports = { actions: [{ generic_key: { descriptor_value: 'expensive' } }] };
  const routes = [
    routeTo({ prefix: '/reports' }, 'host', { rate_limits: [reports] }),
    routeTo({ prefix: '/both' }, 'host', { rate_limits: [BY_USER, reports] }),
    routeTo({ prefix: '/' }, 'host'),
  ];
  const virtualHost = { name: 'all', domains: ['*'], routes, rate_limits: [BY_USER] };
  return { ...limiting(limit, []), route_config: routeConfig([virtualHost]) };
}

const proxy = await startProxy(t, {
  listeners: {
    beside: described('beside', 10, { enable_x_ratelimit_headers: 'DRAFT_VERSION_03' }),
    reported: described('reported', 100, { enable_x_ratelimit_headers: 'DRAFT_VERSION_03' }),
    instead: described('instead', 1, { always_consume_default_token_bucket: false }),
    both: described('both', 100, { vh_rate_limits: 'INCLUDE' }),
    connections: described('connections', 100, { local_rate_limit_per_downstream_connection: true }),
    stage: described('stage', 100, { stage: 1 }),
  },
  clusters: [staticCluster('host', host.port)],
  args: ['-l', 'warning', '--concurrency', '3'],
});

/** Returns how many of `count` requests pass. */
async function passing(listener: string, count: number, path: string, user?: string): Promise<number> {
  const client = new KeepAliveClient(t, proxy.ports[listener]!, 6);
  const answers = await client.repeat(count, path, user === undefined ? {} : { 'x-user': user });
  return tally(answers.map(({ status }) => String(status)))['200'] ?? 0;
}

t.test('a request takes a token of its descriptor and one of the filter', async (t) => {
  t.equal(await passing('beside', 12, '/', 'ann'), 6);
  const answer = await proxy.on('beside', '/', { headers: { 'x-user': 'ann' } });
  t.match(answer, { status: 429, headers: { 'x-ratelimit-limit': '6', 'x-ratelimit-remaining': '0' } });
  t.equal(await passing('beside', 12, '/'), 4, 'six tokens of the filter are used');
  t.equal(await passing('beside', 12, '/', 'bob'), 0);
});

t.test('the response headers describe the lowest limit that applies to the request', async (t) => {
  const headers = { 'x-user': 'ann' };
  const both = await proxy.on('reported', '/both', { headers });
  t.match(both, { status: 200, headers: { 'x-ratelimit-limit': '2', 'x-ratelimit-remaining': '1' } });
  const one = await proxy.on('reported', '/', { headers });
  t.match(one, { status: 200, headers: { 'x-ratelimit-limit': '6', 'x-ratelimit-remaining': '4' } });
  t.match(await proxy.on('reported', '/'), { headers: { 'x-ratelimit-limit': '100', 'x-ratelimit-remaining': '97' } });
});

t.test(
  'with always_consume_default_token_bucket off, a described request needs a token of its descriptor only',
  async (t) => {
    t.equal(await passing('instead', 12, '/', 'ann'), 6);
    t.equal(await passing('instead', 12, '/', 'bob'), 3);
    t.equal(await passing('instead', 12, '/reports', 'ann'), 2, 'the route has its own rate limits');
    t.equal(await passing('instead', 12, '/', 'eve'), 1);
  },
);

t.test('rate limits of the virtual host may apply in addition to those of the route', async (t) => {
  t.equal(await passing('both', 12, '/reports', 'ann'), 2);
  t.equal(await passing('both', 12, '/', 'ann'), 4, 'a request refused by the lower limit takes no token of the other');
});

t.test('each connection may have separate buckets', async (t) => {
  for (let connection = 0; connection < 2; connection++) {
    const client = new KeepAliveClient(t, proxy.ports['connections']!, 1);
    const answers = await client.repeat(5, '/', { 'x-user': 'bob' });
    t.same(
      answers.map(({ status }) => status),
      [200, 200, 200, 429, 429],
    );
  }
});

t.test('rate limits of other stages are ignored', async (t) => {
  t.equal(await passing('stage', 12, '/reports', 'ann'), 12);
});

besideEnvoy('rate limits of the filter have hits, and rate limits decide about headers', async (t, program) => {
  const generic = (descriptor_value: string) => [{ generic_key: { descriptor_value } }];
  const entry = (value: string, tokens: number): Config => ({
    entries: [{ key: 'generic_key', value }],
    token_bucket: bucketOf(tokens),
  });
  const limits = (rate_limits: Config[], more: Config = {}): Config =>
    limiting(limitOf('own', 100, { descriptors: [entry('a', 10), entry('b', 5)], ...more }), [
      routeTo({ prefix: '/' }, 'host', { rate_limits }),
    ]);
  const shown = { enable_x_ratelimit_headers: 'DRAFT_VERSION_03' };
  const a = { actions: generic('a') };
  const hits = (number: number) => ({ ...shown, rate_limits: [{ actions: generic('b'), hits_addend: { number } }] });
  const { on } = await startProxy(t, {
    ...program,
    listeners: {
      on: limits([{ ...a, x_ratelimit_option: 'DRAFT_VERSION_03' }]),
      off: limits([{ ...a, x_ratelimit_option: 'OFF' }], shown),
      end: limits([{ ...a, apply_on_stream_done: true }], shown),
      three: limits([a], hits(3)),
      none: limits([a], hits(0)),
      many: limits([a], hits(9)),
    },
    clusters: [staticCluster('host', host.port)],
  });
  const get = async (listener: string) => {
    const { headers, status } = await on(listener, '/');
    return [status, headers['x-ratelimit-limit'], headers['x-ratelimit-remaining']];
  };
  t.same(await get('on'), [200, '10', '9']);
  t.same(await get('off'), [200, undefined, undefined]);
  t.same(await get('end'), [200, '10', '9'], 'it applies to the request');
  t.same(await get('three'), [200, '5', '2']);
  t.same(await get('three'), [429, '5', '2']);
  t.same(await get('none'), [429, '5', '5']);
  t.same(await get('many'), [429, '5', '5']);
});
