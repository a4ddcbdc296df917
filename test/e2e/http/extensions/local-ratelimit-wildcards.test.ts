// Descriptors of local rate limits whose entries have no value: each value has its own limit.

import t from 'tap';
import { besideEnvoy } from '../../harness/envoy.js';
import { type Config, startEchoUpstream, staticCluster } from '../../harness/index.js';
import { type HttpProxy, routeConfig, routeTo, startProxy } from '../proxy.js';
import { bucketOf, limiting, limitOf } from './rate-limits.js';

const host = await startEchoUpstream(t);
const BY_USER: Config = { actions: [{ request_headers: { header_name: 'x-user', descriptor_key: 'user' } }] };
const BY_BOTH: Config = {
  actions: [
    { generic_key: { descriptor_value: 'api' } },
    { request_headers: { header_name: 'x-user', descriptor_key: 'user' } },
  ],
};
const BY_QUERY: Config = { actions: [{ query_parameters: { query_parameter_name: 'user', descriptor_key: 'user' } }] };
const descriptors: Config[] = [
  { entries: [{ key: 'user' }], token_bucket: bucketOf(1) },
  { entries: [{ key: 'user', value: 'joe' }], token_bucket: bucketOf(2) },
  { entries: [{ key: 'generic_key', value: 'api' }, { key: 'user' }], token_bucket: bucketOf(3) },
  { entries: [{ key: 'generic_key', value: 'other' }, { key: 'user' }], token_bucket: bucketOf(1) },
];

/** Returns a listener whose requests are limited by user; those to /api by user, with another limit. */
function limited(prefix: string, more: Config = {}): Config {
  const limit = limitOf(prefix, 100, {
    descriptors,
    always_consume_default_token_bucket: false,
    enable_x_ratelimit_headers: 'DRAFT_VERSION_03',
    ...more,
  });
  const routes = [
    routeTo({ prefix: '/api' }, 'host', { rate_limits: [BY_BOTH] }),
    routeTo({ prefix: '/query' }, 'host', { rate_limits: [BY_QUERY] }),
    routeTo({ prefix: '/' }, 'host', { rate_limits: [BY_USER] }),
  ];
  return { ...limiting(limit, []), route_config: routeConfig([{ name: 'all', domains: ['*'], routes }]) };
}

/** Returns status and limit of the answers to one request of each user. */
async function answers({ on }: HttpProxy, listener: string, users: string, path = '/'): Promise<string[]> {
  const found: string[] = [];
  for (const user of users.split(' ')) {
    const { headers, status } = await on(listener, path, { headers: { 'x-user': user } });
    found.push(`${user} ${status} ${headers['x-ratelimit-limit']}`);
  }
  return found;
}

besideEnvoy('each value of an entry without a value has its own limit', async (t, program) => {
  const proxy = await startProxy(t, {
    ...program,
    listeners: { main: limited('main'), few: limited('few', { max_dynamic_descriptors: 2 }) },
    clusters: [staticCluster('host', host.port)],
    args: ['-l', 'warning', '--concurrency', '2'],
  });
  t.same(await answers(proxy, 'main', 'ann ann bob bob ann'), [
    'ann 200 1',
    'ann 429 1',
    'bob 200 1',
    'bob 429 1',
    'ann 429 1',
  ]);
  t.same(await answers(proxy, 'main', 'joe joe joe'), ['joe 200 2', 'joe 200 2', 'joe 429 2'], 'its own value');
  t.same(
    await answers(proxy, 'main', 'ann ann ann ann joe', '/api'),
    ['ann 200 3', 'ann 200 3', 'ann 200 3', 'ann 429 3', 'joe 200 3'],
    'of several entries',
  );
  for (const user of ['a%0Ab', 'generic_key%0Aapi', '%00']) {
    t.same(
      await answers(proxy, 'main', 'first second', `/query?user=${user}`),
      ['first 200 1', 'second 429 1'],
      `the value ${user}`,
    );
  }
  t.same(await answers(proxy, 'few', 'a a b b a'), ['a 200 1', 'a 429 1', 'b 200 1', 'b 429 1', 'a 429 1']);
  t.same(await answers(proxy, 'few', 'c c'), ['c 200 1', 'c 429 1'], 'beyond max_dynamic_descriptors');
});

t.test('a limit holds for more values than a worker remembers', async (t) => {
  const proxy = await startProxy(t, {
    listeners: { few: limited('few', { max_dynamic_descriptors: 1 }) },
    clusters: [staticCluster('host', host.port)],
    args: ['-l', 'warning', '--concurrency', '2'],
  });
  const users = Array.from({ length: 30 }, (_, index) => `user-${index}`).join(' ');
  t.ok((await answers(proxy, 'few', users)).every((answer) => answer.endsWith(' 200 1')));
  t.ok((await answers(proxy, 'few', users)).every((answer) => answer.endsWith(' 429 1')));
});
