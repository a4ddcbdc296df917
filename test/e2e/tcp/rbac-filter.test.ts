// envoy.filters.network.rbac: which connections are admitted. The expected results are those of Envoy 1.40.

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import {
  bootstrap,
  type Config,
  connectRaw,
  EpochLine,
  fileAccessLog,
  httpListener,
  startBaton,
  staticCluster,
  tcpListener,
  tempDir,
  waitFor,
} from '../harness/index.js';
import { openStream, type Stream, startPeers } from './stream.js';

const GET = 'GET / HTTP/1.1\r\nhost: a\r\n\r\n';
const BANNER = 'BANNER\n';
const ANY = { any: true };
const policy = (permission: Config = ANY, principal: Config = ANY) => ({
  permissions: [permission],
  principals: [principal],
});
const rules = (policies: Config, action = 'ALLOW') => ({ action, policies });
const ALLOW = rules({ 'yes please': policy() });
const DENY = rules({ 'no no': policy() }, 'DENY');
const NONE = rules({});
const path = { url_path: { path: { prefix: '/' } } };
const cidr = (address_prefix: string) => ({ address_prefix, prefix_len: 8 });

const logs = tempDir(t);
const upstream = await startPeers(t);

function guarded(listener: Config, ...filters: Config[]): Config {
  const [chain] = listener['filter_chains'] as { filters: Config[] }[];
  const before = filters.map((filter) => ({
    name: 'rbac',
    typed_config: {
      '@type': 'type.googleapis.com/envoy.extensions.filters.network.rbac.v3.RBAC',
      stat_prefix: listener['name'],
      ...filter,
    },
  }));
  return { ...listener, stat_prefix: listener['name'], filter_chains: [{ filters: [...before, ...chain!.filters] }] };
}

function tcp(name: string, ...filters: Config[]): Config {
  const format = '%CONNECTION_TERMINATION_DETAILS% %RESPONSE_FLAGS% %BYTES_RECEIVED% %BYTES_SENT%\n';
  const access_log = [fileAccessLog(join(logs, name), format)];
  return guarded(tcpListener(name, 0, { cluster: 'upstream', access_log }), ...filters);
}

function http(name: string, ...filters: Config[]): Config {
  const route = { match: { prefix: '/' }, direct_response: { status: 200, body: { inline_string: 'hi' } } };
  const route_config = { virtual_hosts: [{ name: 'all', domains: ['*'], routes: [route] }] };
  const access_log = [fileAccessLog(join(logs, name), '%RESPONSE_CODE%\n')];
  return guarded(httpListener(name, 0, { route_config, access_log }), ...filters);
}

const both = (name: string, filter: Config) => [tcp(`t-${name}`, filter), http(`h-${name}`, filter)];
const config = bootstrap({
  listeners: [
    ...both('allow', { rules: ALLOW }),
    ...both('deny', { rules: DENY }),
    ...both('none', { rules: NONE }),
    ...both('empty', {}),
    ...both('continuous', { rules: ALLOW, shadow_rules: NONE, enforcement_type: 'CONTINUOUS' }),
    ...both('shadow', { rules: ALLOW, shadow_rules: DENY, shadow_rules_stat_prefix: 'sh' }),
    ...both('delay', { rules: NONE, delay_deny: '0.5s' }),
    tcp('dotted', { rules: ALLOW, stat_prefix: 'dotted.', shadow_rules: ALLOW, shadow_rules_stat_prefix: 'sh.' }),
    tcp('path', { rules: rules({ paths: policy(path) }) }),
    tcp('no-path', { rules: rules({ paths: policy({ not_rule: path }) }) }),
    tcp('two', { rules: ALLOW }, { rules: DENY, stat_prefix: 'second' }),
    tcp('here', {
      rules: rules({ here: policy({ destination_ip: cidr('127.0.0.0') }, { direct_remote_ip: cidr('127.0.0.0') }) }),
    }),
    tcp('elsewhere', { rules: rules({ there: policy(ANY, { remote_ip: cidr('10.0.0.0') }) }) }),
  ],
  clusters: [staticCluster('upstream', upstream.port)],
});
const baton = await startBaton(t, { config, args: ['--concurrency', '1', '--file-flush-interval-msec', '20'] });

const read = (name: string) => readFileSync(join(logs, name), 'utf8').split('\n').slice(0, -1);
const stats = (name: string, numbers: Record<string, number>) =>
  baton.waitForStats(
    Object.fromEntries(Object.entries(numbers).map(([stat, value]) => [`${name}.rbac.${stat}`, value])),
  );
const rules_ = (allowed: number, denied: number) => ({ allowed, denied });

/** Opens a client of a TCP proxy that has received its host's greeting. */
async function greeted(name: string): Promise<{ client: Stream; server: Stream }> {
  const client = await openStream(t, await baton.listenerPort(name));
  const server = await upstream.next();
  await server.write(BANNER);
  await client.receives(BANNER.length);
  return { client, server };
}

t.test('an allowed connection continues, and is counted once, at its first byte or its close', async (t) => {
  const { client, server } = await greeted('t-allow');
  await stats('t-allow', rules_(0, 0));
  await client.write('hello');
  await server.receives(5);
  await client.write('again');
  await server.receives(10);
  await stats('t-allow', { ...rules_(1, 0), shadow_allowed: 0, shadow_denied: 0 });
  client.end();
  t.equal(await server.isClosed(), 'end');
  server.end();
  const silent = await greeted('t-allow');
  silent.client.end();
  t.equal(await silent.server.isClosed(), 'end');
  silent.server.end();
  await stats('t-allow', rules_(2, 0));
  const broken = await greeted('t-allow');
  broken.client.reset();
  t.equal(await broken.server.isClosed(), 'reset');
  await stats('t-allow', rules_(2, 0));
  await waitFor(() => read('t-allow').length === 3);
  t.same(read('t-allow').sort(), ['- - 0 7', '- - 0 7', '- - 10 7']);

  const browser = await connectRaw(t, await baton.listenerPort('h-allow'));
  browser.write(GET);
  await browser.readUntil('hi');
  browser.write(GET);
  await browser.readUntil('hi');
  await stats('h-allow', rules_(1, 0));
});

t.test('a denied connection is closed at its first byte, and the host gets none of it', async (t) => {
  for (const [name, matched] of [
    ['t-deny', 'no_no'],
    ['t-none', 'none'],
    ['path', 'none'],
    ['elsewhere', 'none'],
  ] as const) {
    const { client, server } = await greeted(name);
    await client.write('hello');
    t.equal(await client.isClosed(), 'end', name);
    t.equal(await server.isClosed(), 'end');
    t.equal(server.length, 0);
    server.end();
    await stats(name, rules_(0, 1));
    const half = await greeted(name);
    half.client.end();
    t.equal(await half.client.isClosed(), 'end');
    half.server.end();
    await stats(name, rules_(0, 2));
    const details = `rbac_access_denied_matched_policy[${matched}] -`;
    await waitFor(() => read(name).length === 2);
    t.same(read(name), [`${details} 5 7`, `${details} 0 7`]);
    await baton.waitForStat(`tcp.${name}.downstream_cx_rx_bytes_total`, 5);
  }
});

t.test('HTTP: a denied client gets no response, and one that closes without a byte is not counted', async (t) => {
  for (const name of ['h-deny', 'h-none']) {
    const port = await baton.listenerPort(name);
    const client = await connectRaw(t, port);
    client.write(GET);
    t.match(await client.readToEnd(), { text: '', closed: 'end' }, name);
    await stats(name, rules_(0, 1));
    const silent = await connectRaw(t, port);
    silent.end();
    t.match(await silent.readToEnd(), { text: '', closed: 'end' });
    const both = await connectRaw(t, port);
    both.socket.end(GET);
    t.match(await both.readToEnd(), { text: '' });
    await stats(name, rules_(0, 2));
    await baton.waitForStats({
      [`http.${name}.downstream_cx_destroy`]: 3,
      [`http.${name}.downstream_cx_destroy_local`]: 2,
      [`http.${name}.downstream_cx_destroy_remote`]: 1,
      [`http.${name}.downstream_cx_active`]: 0,
      [`http.${name}.downstream_rq_total`]: 0,
      [`http.${name}.downstream_cx_rx_bytes_total`]: 2 * GET.length,
    });
    t.same(read(name), []);
  }
});

t.test('without rules nothing is denied, and nothing is counted', async () => {
  const { client, server } = await greeted('t-empty');
  await client.write('hello');
  await server.receives(5);
  await stats('t-empty', { ...rules_(0, 0), shadow_allowed: 0, shadow_denied: 0 });
});

t.test('CONTINUOUS counts every read', async () => {
  const { client, server } = await greeted('t-continuous');
  for (let count = 1; count <= 3; count++) {
    await client.write('hello');
    await server.receives(5 * count);
    await stats('t-continuous', { ...rules_(count, 0), shadow_allowed: 0, shadow_denied: count });
  }
  client.end();
  await stats('t-continuous', { ...rules_(4, 0), shadow_denied: 4 });
  const browser = await connectRaw(t, await baton.listenerPort('h-continuous'));
  for (let count = 1; count <= 2; count++) {
    browser.write(GET);
    await browser.readUntil('hi');
    await stats('h-continuous', { ...rules_(count, 0), shadow_denied: count });
  }
});

t.test('shadow rules only count, under their own prefix', async () => {
  for (const [name, numbers] of [
    ['t-shadow', { ...rules_(1, 0), 'sh.shadow_allowed': 0, 'sh.shadow_denied': 1 }],
    ['dotted', { ...rules_(1, 0), 'sh.shadow_allowed': 1, 'sh.shadow_denied': 0 }],
  ] as const) {
    const { client, server } = await greeted(name);
    await client.write('hello');
    await server.receives(5);
    await stats(name, numbers);
  }
});

t.test('address conditions are evaluated; conditions on a path never match', async () => {
  for (const name of ['here', 'no-path']) {
    const { client, server } = await greeted(name);
    await client.write('hello');
    await server.receives(5);
    await stats(name, rules_(1, 0));
  }
});

t.test('each of several filters decides separately', async (t) => {
  const { client, server } = await greeted('two');
  await client.write('hello');
  t.equal(await client.isClosed(), 'end');
  t.equal(await server.isClosed(), 'end');
  await stats('two', rules_(1, 0));
  await stats('second', rules_(0, 1));
});

t.test('delay_deny: a denied connection stays open for a while, and nothing is forwarded', async (t) => {
  const { client, server } = await greeted('t-delay');
  const begun = performance.now();
  await client.write('hello');
  await stats('t-delay', rules_(0, 1));
  await client.write('again');
  await server.write('more');
  await client.receives(BANNER.length + 4);
  t.equal(server.closed, 'open', "the host's side stays open");
  t.not(await client.isClosed(), 'open');
  t.ok(performance.now() - begun >= 490);
  t.equal(await server.isClosed(), 'end');
  t.equal(server.length, 0);
  server.end();
  await waitFor(() => read('t-delay').length === 1);
  t.same(read('t-delay'), ['rbac_access_denied_matched_policy[none] - 5 11']);

  // A client that resets meanwhile is closed at once.
  const broken = await greeted('t-delay');
  await broken.client.write('hello');
  await stats('t-delay', rules_(0, 2));
  broken.client.reset();
  t.not(await broken.server.isClosed(), 'open');
  broken.server.end();
  await waitFor(() => read('t-delay').length === 2);
  t.same(read('t-delay')[1], 'rbac_access_denied_matched_policy[none] - 5 7');

  const browser = await connectRaw(t, await baton.listenerPort('h-delay'));
  browser.write(GET);
  await stats('h-delay', rules_(0, 1));
  browser.write(GET);
  browser.end();
  t.match(await browser.readToEnd(), { text: '' });
  await baton.waitForStats({
    'http.h-delay.downstream_cx_destroy_remote': 1,
    'http.h-delay.downstream_cx_active': 0,
    'listener.h-delay.downstream_cx_active': 0,
  });
  t.equal(await baton.stat('h-delay.rbac.denied'), 1);
});

t.test('hosts get nothing from clients denied during a flood of first bytes', async (t) => {
  const clients = await Promise.all(Array.from({ length: 100 }, () => greeted('t-deny')));
  const before = (await baton.stat('t-deny.rbac.denied'))!;
  for (const { client } of clients) void client.write(Buffer.alloc(4_000_000)).catch(() => undefined);
  for (const { client, server } of clients) {
    t.not(await client.isClosed(), 'open');
    await server.isClosed();
    t.equal(server.length, 0);
    server.end();
  }
  await stats('t-deny', rules_(0, before + clients.length));
  await baton.waitForStat('listener.t-deny.downstream_cx_active', 0);
  await waitFor(async () => (await baton.stat('server.worker_0.buffer_memory_used'))! < 100_000);
});

t.test(
  'a connection with such a filter stays in its process in a hot restart, and is closed by a response',
  async (t) => {
    const line = new EpochLine(t);
    const args = [
      '--concurrency',
      '1',
      '--hand-over-connections',
      '--parent-shutdown-time-s',
      '600',
      '--drain-time-s',
      '1',
    ];
    const own = bootstrap({ listeners: [http('edge', { rules: ALLOW })], clusters: [] });
    const first = await line.start(0, { config: own, args });
    const client = await connectRaw(t, await first.listenerPort('edge'));
    client.write(GET);
    await client.readUntil('hi');
    const second = await line.start(1, { config: own, args });
    await waitFor(async () => (await second.stat('server.hot_restart_generation')) === 2);
    await waitFor(
      async () => {
        client.write(GET);
        return /connection: close.*hi/s.test(await client.readUntil('hi'));
      },
      { what: 'the last response' },
    );
    t.match(await client.readToEnd(), { closed: 'end' });
    await waitFor(() => first.exit !== undefined, { what: 'the exit of the old process' });
  },
);

t.test('conditions that cannot apply to a connection are refused', async (t) => {
  const header = { header: { name: 'x', present_match: true } };
  const no = 'a connection has no headers: use envoy.filters.http.rbac';
  const type = 'type.googleapis.com';
  const typed_config = { '@type': `${type}/envoy.type.matcher.v3.HttpRequestHeaderMatchInput`, header_name: 'x' };
  const action = { name: 'a', typed_config: { '@type': `${type}/envoy.config.rbac.v3.Action`, name: 'a' } };
  const exact_match_map = { map: { x: { action } } };
  const ofHeader = { matcher_tree: { input: { name: 'input', typed_config }, exact_match_map } };
  const cases: [Config, string][] = [
    [{ rules: rules({ a: policy(header) }) }, `rules.policies.a.permissions[0].header: ${no}`],
    [{ rules: rules({ a: policy(ANY, header) }) }, `rules.policies.a.principals[0].header: ${no}`],
    [{ shadow_rules: rules({ a: policy({ not_rule: { and_rules: { rules: [header] } } }) }) }, no],
    [{ rules: rules({ a: policy(ANY, { or_ids: { ids: [{ not_id: header }] } }) }) }, no],
    [{ rules: rules({ a: policy({ metadata: { filter: 'a', path: [{ key: 'a' }], value: {} } }) }) }, 'metadata'],
    [{ matcher: ofHeader }, 'HttpRequestHeaderMatchInput'],
    [{ shadow_matcher: ofHeader }, 'HttpRequestHeaderMatchInput'],
    [{ track_per_rule_stats: true }, 'track_per_rule_stats'],
    [{ stat_prefix: '' }, 'stat_prefix'],
    [{ delay_deny: '-1s' }, 'delay_deny'],
  ];
  const listeners = cases.map(([filter], index) => http(`bad-${index}`, filter));
  const validating = await startBaton(t, {
    config: bootstrap({ listeners, clusters: [] }),
    wait: 'spawned',
    args: ['--mode', 'validate'],
  });
  await waitFor(() => validating.exit !== undefined, { what: 'the exit of the validation' });
  t.equal(validating.exit?.code, 1);
  for (const [index, [, expected]] of cases.entries()) {
    const where = `static_resources.listeners[${index}].filter_chains[0].filters[0].typed_config`;
    const lines = validating.stderr.split('\n').filter((line) => line.includes(where));
    t.ok(lines.join('\n').includes(expected), `${expected}: ${lines}`);
  }
});
