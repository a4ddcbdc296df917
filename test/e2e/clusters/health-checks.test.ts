// Active HTTP health checks: hosts that fail them are not used until they recover.

import t from 'tap';
import { type BatonProcess, bootstrap, freePort, startBaton, startTcpUpstream, waitFor } from '../harness/index.js';
import { answers, CheckedUpstream, checked, flags, http, startWith } from './checked-upstream.js';

t.test('a host that fails its checks is not used until it recovers', async (t) => {
  const [a, b] = await Promise.all([CheckedUpstream.start(t, 'a'), CheckedUpstream.start(t, 'b')]);
  const baton = await startWith(t, checked('api', [a.port, b.port], http()));
  t.same(await answers(baton), ['a', 'b']);
  b.answer = { status: 503 };
  await baton.waitForStat('cluster.api.membership_healthy', 1);
  await waitFor(async () => (await answers(baton)).length === 1);
  t.same(await flags(baton), { [a.port]: 'healthy', [b.port]: '/failed_active_hc' });
  t.match(baton.stderr, `[hc]`);
  t.match(baton.stderr, `cluster 'api', host 127.0.0.1:${b.port} is unhealthy: it has answered 503`);
  t.equal(await baton.stat('cluster.api.health_check.healthy'), 1);
  b.answer = { status: 200 };
  await baton.waitForStat('cluster.api.membership_healthy', 2);
  await waitFor(async () => (await answers(baton)).length === 2);
  t.match(baton.stderr, `cluster 'api', host 127.0.0.1:${b.port} is healthy: it has answered 200`);
  t.notMatch(baton.stderr, 'its check has', 'checks that change nothing are not logged');
  const { attempt, failure, success, verify_cluster } = await baton.stats('cluster.api.health_check.');
  t.ok(attempt! >= success! + failure! && failure! > 0);
  t.equal(verify_cluster, 0);
  t.equal(
    await baton.stat('cluster.api.upstream_cx_total'),
    (await sumOf(baton, 'cx_total'))!,
    'checks do not count as requests',
  );
});

/** Returns the sum over all hosts, as /clusters shows it. */
async function sumOf(baton: BatonProcess, stat: string): Promise<number> {
  const { body } = await baton.admin('/clusters');
  return [...body.matchAll(new RegExp(`::${stat}::(\\d+)`, 'g'))].reduce((sum, [, value]) => sum + Number(value), 0);
}

t.test('checks are sent as configured, on one connection', async (t) => {
  const a = await CheckedUpstream.start(t, 'a');
  const check = http({
    host: 'health.test',
    method: 'HEAD',
    request_headers_to_add: [
      { header: { key: 'x-check', value: '100%%' } },
      { header: { key: 'user-agent', value: 'tester' }, append_action: 'OVERWRITE_IF_EXISTS_OR_ADD' },
    ],
    expected_statuses: [{ start: 204, end: 205 }],
  });
  a.answer = { status: 204 };
  const baton = await startWith(t, checked('api', [a.port], { ...check, always_log_health_check_success: true }));
  await waitFor(() => a.checks.length > 3);
  await waitFor(() => baton.stderr.includes(`host 127.0.0.1:${a.port}: its check has passed: it has answered 204`));
  const { headers, method } = a.checks[0]!;
  t.equal(method, 'HEAD');
  t.same(headers, { host: 'health.test', 'user-agent': 'tester', 'x-check': '100%' });
  t.equal(a.upstream.accepted(), 1);
});

t.test('retriable statuses count towards the threshold, others fail at once', async (t) => {
  const [a, b] = await Promise.all([CheckedUpstream.start(t, 'a'), CheckedUpstream.start(t, 'b')]);
  const check = {
    ...http({ retriable_statuses: [{ start: 503, end: 504 }] }),
    unhealthy_threshold: 1_000_000,
    always_log_health_check_failures: true,
  };
  const baton = await startWith(t, checked('api', [a.port, b.port], check));
  a.answer = { status: 503 };
  b.answer = { status: 500 };
  await baton.waitForStat('cluster.api.health_check.healthy', 1);
  const before = a.checks.length;
  await waitFor(() => a.checks.length > before + 5);
  t.same(await flags(baton), { [a.port]: 'healthy', [b.port]: '/failed_active_hc' });
  t.match(baton.stderr, `host 127.0.0.1:${a.port}: its check has failed: it has answered 503`);
});

t.test('a host is healthy again after healthy_threshold passed checks', async (t) => {
  const a = await CheckedUpstream.start(t, 'a');
  const baton = await startWith(t, checked('api', [a.port], { ...http(), healthy_threshold: 5 }));
  t.same(await flags(baton), { [a.port]: 'healthy' }, 'the first check is decisive');
  a.answer = { status: 500 };
  await baton.waitForStat('cluster.api.health_check.healthy', 0);
  a.checks = [];
  a.answer = { status: 200 };
  await baton.waitForStat('cluster.api.health_check.healthy', 1);
  t.ok(a.checks.length >= 5, `${a.checks.length} checks`);
});

t.test('a host that answers with x-envoy-degraded is degraded', async (t) => {
  const [a, b] = await Promise.all([CheckedUpstream.start(t, 'a'), CheckedUpstream.start(t, 'b')]);
  b.answer = { status: 200, headers: { 'x-envoy-degraded': '' } };
  const baton = await startWith(t, checked('api', [a.port, b.port], http()));
  t.same(await flags(baton), { [a.port]: 'healthy', [b.port]: '/degraded_active_hc' });
  const { degraded, healthy } = await baton.stats('cluster.api.health_check.');
  t.same({ degraded, healthy }, { degraded: 1, healthy: 2 });
});

t.test('a host of another service fails, unless runtime disables the comparison', async (t) => {
  const [a, b, c] = await Promise.all(['a', 'b', 'c'].map((name) => CheckedUpstream.start(t, name)));
  const of = (service: string) => ({ status: 200, headers: { 'x-envoy-upstream-healthchecked-cluster': service } });
  a!.answer = of('api-7');
  b!.answer = of('other');
  const cluster = checked('api', [a!.port, b!.port, c!.port], http({ service_name_matcher: { prefix: 'api-' } }));
  const baton = await startBaton(t, {
    config: bootstrap({
      listeners: [],
      clusters: [cluster],
      extra: { layered_runtime: { layers: [{ name: 'admin', admin_layer: {} }] } },
    }),
  });
  t.same(await flags(baton), { [a!.port]: 'healthy', [b!.port]: '/failed_active_hc', [c!.port]: '/failed_active_hc' });
  t.match(baton.stderr, "its check has failed: it is of the service 'other'");
  t.ok((await baton.stat('cluster.api.health_check.verify_cluster'))! >= 3);
  await baton.admin('/runtime_modify?health_check.verify_cluster=0', { method: 'POST' });
  await baton.waitForStat('cluster.api.health_check.healthy', 3);
});

t.test('the server is live when each host has been checked once, whatever the result', async (t) => {
  const [a, b] = await Promise.all([CheckedUpstream.start(t, 'a'), CheckedUpstream.start(t, 'b')]);
  const held: (() => void)[] = [];
  a.upstream.server.removeAllListeners('request');
  a.upstream.server.on('request', (_request, response) => held.push(() => response.writeHead(500).end()));
  const baton = await startWith(t, checked('api', [a.port, b.port], { ...http(), interval: '100s' }), 'spawned');
  await waitFor(() => held.length === 1 && b.checks.length > 0);
  t.not((await baton.admin('/ready')).status, 200);
  for (const answer of held) answer();
  await waitFor(async () => (await baton.admin('/ready')).status === 200);
  t.same(await flags(baton), { [a.port]: '/failed_active_hc', [b.port]: 'healthy' });
});

t.test('a check without a response times out', async (t) => {
  const a = await CheckedUpstream.start(t, 'a');
  a.answer = undefined;
  const baton = await startWith(t, checked('api', [a.port], { ...http(), timeout: '0.05s' }));
  t.same(await flags(baton), { [a.port]: '/failed_active_hc/active_hc_timeout' });
  t.ok((await baton.stat('cluster.api.health_check.network_failure'))! > 0);
  t.match(baton.stderr, 'its check has failed: it does not answer in time');
});

t.test('a non-HTTP response and a closed connection are failures', async (t) => {
  const talker = await startTcpUpstream(t, (socket) => socket.once('data', () => socket.end('hello\r\n\r\n')));
  const closer = await startTcpUpstream(t, (socket) => socket.once('data', () => socket.destroy()));
  const closed = await freePort();
  const baton = await startWith(t, checked('api', [talker.port, closer.port, closed], http()));
  t.same(Object.values(await flags(baton)), ['/failed_active_hc', '/failed_active_hc', '/failed_active_hc']);
  t.match(baton.stderr, new RegExp(`${talker.port}: its check has failed: its answer is no HTTP/1\\.1`));
  t.match(
    baton.stderr,
    new RegExp(`${closer.port}: its check has failed: it has closed the connection without an answer`),
  );
  t.match(baton.stderr, new RegExp(`${closed}: its check has failed: .*Connection refused`));
});
