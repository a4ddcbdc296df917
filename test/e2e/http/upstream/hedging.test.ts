// Hedging (hedge_policy): tries that time out go on beside the next one, and the first good response wins.

import type { ServerResponse } from 'node:http';
import t, { type Test } from 'tap';
import { besideEnvoy, type ProxyProgram } from '../../harness/envoy.js';
import {
  bootstrap,
  type Config,
  fileAccessLog,
  httpListener,
  httpRequest,
  logLines,
  ROUTER_FILTER,
  startBaton,
  startUpstream,
  staticCluster,
  tempDir,
  waitFor,
} from '../../harness/index.js';

/** A try that the host has received. The test answers it. */
interface Try {
  readonly host: string;
  readonly attempt: string | undefined;
  readonly expectedMs: number;
  readonly response: ServerResponse;
  isReset: boolean;
}

const RETRIES = { retry_on: '5xx', num_retries: 1, per_try_timeout: '0.1s' };
const HEDGED = { hedge_policy: { hedge_on_per_try_timeout: true }, retry_policy: RETRIES };

/** Starts a proxy whose routes lead to clusters of the same name, all with one host that answers when the test lets it. */
async function start(
  t: Test,
  program: ProxyProgram,
  routes: Readonly<Record<string, Config>>,
  cluster: Config = {},
  addresses: readonly string[] = ['127.0.0.1'],
) {
  const log = `${tempDir(t)}/log`;
  const tries: Record<string, Try[]> = {};
  const host = await startUpstream(
    t,
    (request, response) => {
      const { headers, url = '' } = request;
      const one: Try = {
        host: `${request.socket.localAddress}:${request.socket.localPort}`,
        attempt: headers['x-envoy-attempt-count'] as string | undefined,
        expectedMs: Number(headers['x-envoy-expected-rq-timeout-ms']),
        response,
        isReset: false,
      };
      response.on('close', () => {
        one.isReset = !response.writableFinished;
      });
      request.resume().on('end', () => (tries[url.slice(1)] ??= []).push(one));
    },
    0,
    '0.0.0.0',
  );
  const listener = httpListener('in', 0, {
    stat_prefix: 'in',
    internal_address_config: { cidr_ranges: [{ address_prefix: '10.0.0.0', prefix_len: 8 }] },
    access_log: [
      fileAccessLog(
        log,
        '%REQ(:PATH)% %RESPONSE_CODE% %RESPONSE_CODE_DETAILS% %RESPONSE_FLAGS% %UPSTREAM_REQUEST_ATTEMPT_COUNT%\n',
      ),
    ],
    route_config: {
      virtual_hosts: [
        {
          name: 'all',
          domains: ['*'],
          include_request_attempt_count: true,
          include_attempt_count_in_response: true,
          response_headers_to_add: [{ header: { key: 'x-host', value: '%UPSTREAM_HOST%' } }],
          routes: Object.entries(routes).map(([name, action]) => ({
            match: { path: `/${name}` },
            route: { cluster: name, timeout: '30s', ...action },
          })),
        },
      ],
    },
    http_filters: [ROUTER_FILTER],
  });
  const lb_endpoints = addresses.map((address) => ({
    endpoint: { address: { socket_address: { address, port_value: host.port } } },
  }));
  const clusters = Object.keys(routes).map((name) => ({
    ...staticCluster(name, host.port),
    load_assignment: { cluster_name: name, endpoints: [{ lb_endpoints }] },
    ...cluster,
  }));
  const args = ['--file-flush-interval-msec', '50', '--concurrency', '1'];
  const baton = await startBaton(t, { ...program, args, config: bootstrap({ listeners: [listener], clusters }) });
  const port = await baton.listenerPort('in');
  const send = (name: string, headers: Record<string, string> = {}, body = '') =>
    httpRequest(port, `/${name}`, { method: 'POST', body, headers });
  const arrived = (name: string, count: number) =>
    waitFor(() => ((tries[name]?.length ?? 0) >= count ? tries[name] : undefined), {
      what: `${count} tries of ${name}`,
    });
  const line = (name: string) =>
    waitFor(() => logLines(log).find((each) => each.startsWith(`/${name} `)), { what: `the line of ${name}` });
  return { arrived, baton, line, send, tries };
}

function answer({ response }: Try, status: number, body = String(status)): void {
  response.writeHead(status, { 'x-status': String(status) }).end(body);
}

const isReset = (one: Try) => waitFor(() => one.isReset, { what: 'the reset of a try' });

besideEnvoy('the first good response wins, and the other try is reset', async (t, program) => {
  const { arrived, baton, line, send } = await start(t, program, { second: HEDGED, first: HEDGED });
  const second = send('second', {}, 'body');
  const tries = await arrived('second', 2);
  t.strictSame(
    tries.map(({ attempt }) => attempt),
    ['1', '2'],
  );
  t.ok(tries[0]!.expectedMs > 20_000, 'a try may take as long as the request');
  answer(tries[1]!, 200, 'second');
  t.match(await second, { status: 200, body: 'second', headers: { 'x-envoy-attempt-count': '2' } });
  await isReset(tries[0]!);
  t.match(await line('second'), /^\/second 200 via_upstream \S+ 2$/);

  const first = send('first');
  const others = await arrived('first', 2);
  answer(others[0]!, 200, 'first');
  t.match(await first, { status: 200, body: 'first', headers: { 'x-envoy-attempt-count': '2' } });
  await isReset(others[1]!);
  await baton.waitForStats({
    'cluster.second.upstream_rq_total': 2,
    'cluster.second.upstream_rq_active': 0,
    'cluster.second.upstream_rq_completed': 1,
    'cluster.second.upstream_rq_retry': 1,
    'cluster.second.upstream_rq_per_try_timeout': 0,
    'cluster.second.upstream_rq_timeout': 0,
    'cluster.second.upstream_cx_destroy_local_with_active_rq': 1,
    'cluster.first.upstream_rq_retry_success': 0,
    'cluster.first.upstream_rq_completed': 1,
    'cluster.first.upstream_rq_active': 0,
    'cluster.first.circuit_breakers.default.rq_retry_open': 0,
  });
});

besideEnvoy('a bad response is dropped while another try may have a good one', async (t, program) => {
  const { arrived, baton, line, send } = await start(t, program, { early: HEDGED, late: HEDGED, bad: HEDGED });
  const early = send('early');
  const tries = await arrived('early', 2);
  answer(tries[0]!, 503);
  await baton.waitForStats({ 'cluster.early.upstream_rq_active': 1 });
  answer(tries[1]!, 200, 'good');
  t.match(await early, { status: 200, body: 'good' });

  const late = send('late');
  const others = await arrived('late', 2);
  answer(others[1]!, 503);
  await baton.waitForStats({ 'cluster.late.upstream_rq_active': 1 });
  answer(others[0]!, 200, 'good');
  t.match(await late, { status: 200, body: 'good' });
  t.match(await line('late'), '/late 200 via_upstream URX 2', 'the last try has asked for a retry');

  const bad = send('bad');
  const last = await arrived('bad', 2);
  answer(last[1]!, 503);
  await baton.waitForStats({ 'cluster.bad.upstream_rq_active': 1 });
  answer(last[0]!, 500);
  t.match(await bad, { status: 500 });
  t.equal(await line('bad'), '/bad 500 via_upstream URX 2');
  await baton.waitForStats({
    'cluster.bad.upstream_rq_completed': 1,
    'cluster.bad.upstream_rq_500': 1,
    'cluster.bad.upstream_rq_active': 0,
  });
});

besideEnvoy('the response of the first try has its host, also after the second try has ended', async (t, program) => {
  const routes = { open: HEDGED, dropped: HEDGED };
  const { arrived, baton, send } = await start(t, program, routes, {}, ['127.0.0.1', '127.0.0.2']);
  for (const name of ['open', 'dropped']) {
    const sent = send(name);
    const [first, second] = await arrived(name, 2);
    t.not(first!.host, second!.host);
    if (name === 'dropped') {
      answer(second!, 503);
      await baton.waitForStats({ 'cluster.dropped.upstream_rq_active': 1 });
    }
    answer(first!, 200);
    t.match(await sent, { status: 200, headers: { 'x-host': first!.host } });
  }
});

besideEnvoy('a 1xx response decides which try goes on', async (t, program) => {
  const { arrived, baton, send } = await start(t, program, { informed: HEDGED });
  const informed = send('informed', {}, 'body');
  const [first, second] = await arrived('informed', 2);
  first!.response.writeContinue();
  await isReset(second!);
  answer(first!, 200, 'good');
  t.match(await informed, { status: 200, body: 'good' });
  await baton.waitForStats({ 'cluster.informed.upstream_rq_active': 0 });
});

besideEnvoy('the first try leaves the circuit breaker of retries when its response begins', async (t, program) => {
  const circuit_breakers = { thresholds: [{ max_retries: 1 }] };
  // With retries left the place is kept while further tries time out.
  const begins = { ...HEDGED, retry_policy: { ...RETRIES, num_retries: 1000, per_try_timeout: '0.3s' } };
  const { arrived, baton, send } = await start(t, program, { begun: begins }, { circuit_breakers });
  const begun = send('begun');
  const [first] = await arrived('begun', 2);
  await baton.waitForStats({ 'cluster.begun.circuit_breakers.default.rq_retry_open': 1 });
  first!.response.writeHead(200);
  first!.response.write('begun');
  await baton.waitForStats({ 'cluster.begun.circuit_breakers.default.rq_retry_open': 0 });
  first!.response.end();
  t.match(await begun, { status: 200, body: 'begun' });
});

besideEnvoy('a connection that breaks ends only its try', async (t, program) => {
  const { arrived, baton, send } = await start(t, program, { broken: HEDGED, both: HEDGED });
  const broken = send('broken');
  const tries = await arrived('broken', 2);
  tries[0]!.response.destroy();
  await baton.waitForStats({ 'cluster.broken.upstream_rq_active': 1 });
  answer(tries[1]!, 200, 'good');
  t.match(await broken, { status: 200, body: 'good' });

  const both = send('both');
  const others = await arrived('both', 2);
  others[1]!.response.destroy();
  await baton.waitForStats({ 'cluster.both.upstream_rq_active': 1 });
  others[0]!.response.destroy();
  t.match(await both, { status: 503 });
  await baton.waitForStats({
    'cluster.broken.upstream_rq_503': 1,
    'cluster.broken.upstream_rq_200': 1,
    'cluster.both.upstream_rq_503': 2,
    'cluster.both.upstream_rq_active': 0,
  });
});

besideEnvoy('the timeout of the request ends all tries, each of which counts', async (t, program) => {
  const { arrived, baton, line, send } = await start(t, program, { slow: { ...HEDGED, timeout: '0.6s' } });
  const { body, status } = await send('slow');
  t.strictSame({ body, status }, { body: 'upstream request timeout', status: 504 });
  for (const one of await arrived('slow', 2)) await isReset(one);
  t.match(await line('slow'), '/slow 504 response_timeout');
  await baton.waitForStats({
    'cluster.slow.upstream_rq_timeout': 2,
    'cluster.slow.upstream_rq_504': 2,
    'cluster.slow.upstream_rq_active': 0,
    'cluster.slow.upstream_rq_per_try_timeout': 0,
  });
});

besideEnvoy('without retries a try that times out goes on; headers of internal clients decide', async (t, program) => {
  const { hedge_policy } = HEDGED;
  const onlyResets = { ...RETRIES, retry_on: 'reset' };
  const { arrived, baton, send, tries } = await start(t, program, {
    alone: { hedge_policy, retry_policy: { per_try_timeout: '0.1s' } },
    conditions: { hedge_policy, retry_policy: onlyResets },
    asked: { retry_policy: RETRIES },
    declined: { ...HEDGED, retry_policy: { ...RETRIES, per_try_timeout: '1s' } },
  });
  const alone = send('alone');
  const conditions = send('conditions');
  answer((await arrived('conditions', 2))[1]!, 200);
  t.equal((await conditions).status, 200, 'a timeout needs no condition of its own');
  answer((await arrived('alone', 1))[0]!, 200);
  t.equal((await alone).status, 200);
  t.equal(tries['alone']!.length, 1);

  const internal = (value: string) => ({ 'x-forwarded-for': '10.0.0.1', 'x-envoy-hedge-on-per-try-timeout': value });
  const asked = send('asked', internal('true'));
  answer((await arrived('asked', 2))[0]!, 200);
  t.equal((await asked).status, 200);
  const declined = send('declined', internal('false'));
  const [first, second] = await arrived('declined', 2);
  await isReset(first!);
  answer(second!, 200);
  t.equal((await declined).status, 200);
  await baton.waitForStats({
    'cluster.asked.upstream_rq_per_try_timeout': 0,
    'cluster.declined.upstream_rq_per_try_timeout': 1,
  });
});

besideEnvoy('the circuit breaker of retries applies to tries that go on', async (t, program) => {
  const circuit_breakers = { thresholds: [{ max_retries: 0 }] };
  const { arrived, baton, line, send } = await start(t, program, { full: HEDGED }, { circuit_breakers });
  const full = send('full');
  await baton.waitForStats({ 'cluster.full.upstream_rq_retry_overflow': 1 });
  answer((await arrived('full', 1))[0]!, 200, 'alone');
  t.match(await full, { status: 200, body: 'alone' });
  t.equal(await line('full'), '/full 200 via_upstream UO 1');
});

besideEnvoy('initial_requests and additional_request_chance have no effect', async (t, program) => {
  const hedge_policy = { initial_requests: 3, additional_request_chance: { numerator: 100 } };
  const { arrived, baton, send, tries } = await start(t, program, { one: { hedge_policy } });
  const one = send('one');
  answer((await arrived('one', 1))[0]!, 200);
  t.equal((await one).status, 200);
  await baton.waitForStats({ 'cluster.one.upstream_rq_total': 1 });
  t.equal(tries['one']!.length, 1);
});

t.test('the hedges of many requests leave nothing behind', async (t) => {
  const circuit_breakers = { thresholds: [{ max_retries: 100 }] };
  const retry_policy = { ...RETRIES, num_retries: 2, per_try_timeout: '0.05s' };
  const { arrived, baton, send } = await start(
    t,
    { command: undefined },
    { many: { ...HEDGED, retry_policy } },
    { circuit_breakers },
  );
  const sent = Array.from({ length: 30 }, () => send('many'));
  for (const one of await arrived('many', 90)) if (!one.isReset) answer(one, 200);
  for (const { status } of await Promise.all(sent)) t.equal(status, 200);
  await baton.waitForStats({
    'cluster.many.upstream_rq_active': 0,
    'cluster.many.upstream_rq_pending_active': 0,
    'cluster.many.circuit_breakers.default.rq_retry_open': 0,
    'http.in.downstream_rq_active': 0,
  });
});
