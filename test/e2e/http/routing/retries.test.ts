// When a request is retried, how often, with what data, and when it is not.

import { createHash } from 'node:crypto';
import t from 'tap';
import {
  type Config,
  connectRaw,
  freePort,
  startBlackHole,
  startUpstream,
  staticCluster,
  TRAILERS_CLUSTER,
  waitFor,
} from '../../harness/index.js';
import { parseMessage } from '../message.js';
import { routeConfig, routeTo, startProxy } from '../proxy.js';
import { type RawRequest, response, startRawUpstream } from '../raw-upstream.js';

const QUICKLY = { retry_back_off: { base_interval: '0.001s', max_interval: '0.002s' } };

const EARLY = 'HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n';

/** Attempts by the request's x-test header. */
const attempts = new Map<string, RawRequest[]>();

// Answers as the x-script header says: one word per attempt, the last one for all further attempts.
const upstream = await startRawUpstream(t, (request) => {
  const script = /\r\nx-script: (.*?)(\r\n|$)/.exec(request.head)?.[1]?.split(',') ?? ['200'];
  const key = /\r\nx-test: (.*?)(\r\n|$)/.exec(request.head)?.[1] ?? '';
  const seen = attempts.get(key) ?? [];
  attempts.set(key, [...seen, request]);
  const step = script[Math.min(seen.length, script.length - 1)]!;
  if (step === 'close') request.socket.end();
  else if (step === 'reset') request.socket.resetAndDestroy();
  else if (step === 'half') request.socket.end('HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nhalf');
  else if (step === 'stall') request.socket.write('HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nhalf');
  else if (step === 'bare') request.socket.write(response(503));
  else if (step === 'early') request.socket.write(`${EARLY}${response(503, 'try 1')}`);
  else if (step === 'early-close') request.socket.end(EARLY);
  else if (step === 'marked') request.socket.write(response(500, 'marked', { 'x-again': 'yes' }));
  else if (step === 'overloaded') request.socket.write(response(503, 'overloaded', { 'x-envoy-overloaded': 'true' }));
  else if (step !== 'hang') request.socket.write(response(Number(step), `try ${seen.length + 1}`));
});
const bodies: string[] = [];
const reader = await startUpstream(t, (request, answer) => {
  const hash = createHash('sha256');
  request.on('data', (chunk: Buffer) => hash.update(chunk));
  request.on('end', () => {
    bodies.push(`${hash.digest('hex')} ${request.headers['x-envoy-attempt-count']} ${request.trailers['x-end'] ?? ''}`);
    answer.statusCode = request.headers['x-envoy-attempt-count'] === '3' ? 200 : 503;
    answer.end();
  });
});

const proxy = await startProxy(t, {
  listeners: {
    main: {
      route_config: routeConfig([
        {
          name: 'all',
          domains: ['*'],
          include_request_attempt_count: true,
          include_attempt_count_in_response: true,
          routes: retryRoutes(),
        },
      ]),
      http_protocol_options: { enable_trailers: true },
      proxy_100_continue: true,
    },
    host: {
      route_config: routeConfig([
        {
          name: 'all',
          domains: ['*'],
          retry_policy: { retry_on: '5xx', num_retries: 2, ...QUICKLY },
          routes: [
            routeTo({ prefix: '/own' }, 'raw', { retry_policy: { retry_on: 'retriable-4xx', ...QUICKLY } }),
            routeTo({ prefix: '/' }, 'raw'),
          ],
        },
      ]),
    },
  },
  clusters: [
    staticCluster('raw', upstream.port, { circuit_breakers: { thresholds: [{ track_remaining: true }] } }),
    staticCluster('kept', upstream.port),
    staticCluster('reader', reader.port, TRAILERS_CLUSTER),
    staticCluster('half', [await freePort(), upstream.port]),
    staticCluster('deaf', [await startBlackHole(t), upstream.port], { connect_timeout: '0.2s' }),
    staticCluster('closed', await freePort()),
  ],
});

t.test('the conditions of retry_on decide what is retried', async (t) => {
  const cases: [string, string, number, number][] = [
    // policy, what the host does, status for the client, attempts
    ['none', '503,200', 503, 1],
    ['5xx', '500,200', 200, 2],
    ['5xx', '503,200', 200, 2],
    ['5xx', '404,200', 404, 1],
    ['5xx', 'close,200', 200, 2],
    ['5xx', 'reset,200', 200, 2],
    ['gateway-error', '502,200', 200, 2],
    ['gateway-error', '503,200', 200, 2],
    ['gateway-error', '504,200', 200, 2],
    ['gateway-error', '500,200', 500, 1],
    ['reset', 'close,200', 200, 2],
    ['reset', 'reset,200', 200, 2],
    ['reset', '503,200', 503, 1],
    ['connect-failure', '503,200', 503, 1],
    ['connect-failure', 'close,200', 503, 1],
    ['retriable-4xx', '409,200', 200, 2],
    ['retriable-4xx', '404,200', 404, 1],
    ['codes', '418,200', 200, 2],
    ['codes', '404,200', 404, 1],
    ['codes', '503,200', 503, 1],
    ['headers', 'marked,200', 200, 2],
    ['headers', '500,200', 500, 1],
    ['two', 'close,409,200', 200, 3],
    ['5xx', 'overloaded,200', 200, 2],
  ];
  for (const [policy, script, status, tries] of cases) {
    const test = `${policy} ${script}`;
    const answer = await proxy.get(`/${policy}/`, { headers: { 'x-script': script, 'x-test': test } });
    t.equal(answer.status, status, test);
    t.equal(attempts.get(test)!.length, tries, `${test}: attempts`);
    t.equal(answer.headers['x-envoy-attempt-count'], String(tries), `${test}: attempts reported to the client`);
    const seenByHost = attempts.get(test)!.map(({ head }) => /x-envoy-attempt-count: (\d+)/.exec(head)?.[1]);
    t.same(
      seenByHost,
      Array.from({ length: tries }, (_, index) => `${index + 1}`),
      `${test}: attempts reported to the host`,
    );
  }
});

t.test('a retry avoids the hosts of earlier attempts', async (t) => {
  const good = await startRawUpstream(t, ({ socket }) => socket.write(response(200, 'good')));
  const bad = await startRawUpstream(t, ({ socket }) => socket.write(response(503, 'bad')));
  const name = 'envoy.retry_host_predicates.previous_hosts';
  const typed_config = {
    '@type': 'type.googleapis.com/envoy.extensions.retry.host.previous_hosts.v3.PreviousHostsPredicate',
  };
  const avoiding = {
    retry_policy: {
      retry_on: '5xx',
      retry_host_predicate: [{ name, typed_config }],
      host_selection_retry_max_attempts: '200',
      ...QUICKLY,
    },
  };
  const random = { lb_policy: 'RANDOM' };
  const { get } = await startProxy(t, {
    listeners: {
      main: {
        route_config: routeConfig([
          {
            name: 'all',
            domains: ['*'],
            routes: [routeTo({ prefix: '/alone' }, 'alone', avoiding), routeTo({ prefix: '/' }, 'both', avoiding)],
          },
        ]),
      },
    },
    clusters: [staticCluster('both', [good.port, bad.port], random), staticCluster('alone', bad.port, random)],
  });
  for (let i = 0; i < 40; i++) t.equal((await get('/')).status, 200);
  const { length } = bad.requests;
  t.ok(length > 2, `${length} of 40 went to the bad host first, whatever hosts requests before them had been at`);
  t.equal((await get('/alone')).status, 503);
  t.equal(bad.requests.length, length + 2, 'the only host is retried');
});

t.test('a retry waits as long as the host requests', async (t) => {
  let tries = 0;
  const limited = await startRawUpstream(t, ({ socket }) => {
    socket.write(tries++ === 0 ? response(503, 'later', { 'retry-after': '1' }) : response(200, 'now'));
  });
  const retry_policy = {
    retry_on: '5xx',
    ...QUICKLY,
    rate_limited_retry_back_off: { reset_headers: [{ name: 'retry-after', format: 'SECONDS' }] },
  };
  const { baton, get } = await startProxy(t, {
    listeners: {
      main: {
        route_config: routeConfig([
          { name: 'all', domains: ['*'], routes: [routeTo({ prefix: '/' }, 'limited', { retry_policy })] },
        ]),
      },
    },
    clusters: [staticCluster('limited', limited.port)],
  });
  t.match(await get('/'), { status: 200, body: 'now' });
  t.equal(await baton.stat('cluster.limited.upstream_rq_retry_backoff_ratelimited'), 1);
  t.equal(await baton.stat('cluster.limited.upstream_rq_retry_backoff_exponential'), 0);
});

t.test('num_retries limits the attempts, and the last response is forwarded unchanged', async (t) => {
  const cases: [string, number][] = [
    ['5xx', 2],
    ['four', 5],
  ];
  for (const [policy, tries] of cases) {
    const { status, body } = await proxy.get(`/${policy}/`, {
      headers: { 'x-script': '503', 'x-test': `limit ${policy}` },
    });
    t.match({ status, body }, { status: 503, body: `try ${tries}` });
    t.equal(attempts.get(`limit ${policy}`)!.length, tries);
  }
});

t.test('a retriable response is counted and logged when the retries are used up, whatever its status', async (t) => {
  const exceeded = 'cluster.raw.upstream_rq_retry_limit_exceeded';
  const succeeded = 'cluster.raw.upstream_rq_retry_success';
  const [exceededBefore, succeededBefore] = [await proxy.baton.stat(exceeded), await proxy.baton.stat(succeeded)];
  t.equal((await proxy.get('/never/', { headers: { 'x-script': '409', 'x-test': 'none left' } })).status, 409);
  t.equal((await proxy.get('/codes/', { headers: { 'x-script': '418', 'x-test': 'one left' } })).status, 418);
  await proxy.baton.waitForStat(exceeded, exceededBefore! + 2);
  t.equal(await proxy.baton.stat(succeeded), succeededBefore, 'neither counts as a success');
});

t.test('the retry policy of a virtual host applies to routes without one', async (t) => {
  const headers = { 'x-script': '503', 'x-test': 'of the virtual host' };
  t.equal((await proxy.on('host', '/', { headers })).body, 'try 3');
  const own = { 'x-script': '503,200', 'x-test': 'of the route' };
  t.equal((await proxy.on('host', '/own', { headers: own })).body, 'try 1');
});

t.test('a host that refuses connections is skipped for the next one', async (t) => {
  for (let i = 0; i < 6; i++) t.equal((await proxy.get('/failure/half')).status, 200);
  for (let i = 0; i < 2; i++) t.equal((await proxy.get('/failure/deaf')).status, 200, 'a silent host is skipped too');
  const { status, body } = await proxy.get('/failure/closed');
  t.equal(status, 503);
  t.match(body, /^upstream connect error or disconnect\/reset before headers\. /);
  t.match(body, /reset reason: remote connection failure/);
});

t.test('an attempt without a connection counts as unsent, whatever attempts came before it', async (t) => {
  for (let i = 0; i < 2; i++) {
    const headers = { 'x-script': '409,200', 'x-test': `unsent ${i}` };
    t.match(await proxy.get('/unsent/', { headers }), { status: 200, body: 'try 2' });
  }
});

t.test('only requests that match retriable_request_headers are retried', async (t) => {
  const request = (test: string, headers: Record<string, string>) =>
    proxy.get('/marked/', { headers: { 'x-script': '503,200', 'x-test': test, ...headers } });
  t.equal((await request('without the header', {})).status, 503);
  t.equal((await request('with the header', { 'x-idempotent': '1' })).status, 200);
});

t.test('an attempt that times out is retried within the request timeout', async (t) => {
  const headers = { 'x-script': 'hang,200', 'x-test': 'per try' };
  const { status, body } = await proxy.get('/per-try/', { headers });
  t.match({ status, body }, { status: 200, body: 'try 2' });
  const { socket } = attempts.get('per try')![0]!;
  await waitFor(() => socket.destroyed, { what: 'the host to see the first attempt cancelled' });
  const never = { 'x-script': 'hang', 'x-test': 'hanging tries' };
  t.match(await proxy.get('/per-try/', { headers: never }), { status: 504, body: 'upstream request timeout' });
  t.equal(attempts.get('hanging tries')!.length, 3);
  await proxy.baton.waitForStat('cluster.raw.upstream_rq_per_try_timeout', 4);
  const whole = { 'x-script': 'hang', 'x-test': 'whole request' };
  t.match(await proxy.get('/whole/', { headers: whole }), { status: 504, body: 'upstream request timeout' });
  t.ok(attempts.get('whole request')!.length <= 3, 'the request timeout ends the attempts');
});

t.test('a slow upload does not use up the per-try timeout', async (t) => {
  const sender = await connectRaw(t, proxy.port);
  const head = 'POST /per-try/ HTTP/1.1\r\nhost: a\r\nx-script: 200\r\nx-test: slow sender\r\n';
  sender.write(`${head}transfer-encoding: chunked\r\n\r\n3\r\nabc\r\n`);
  await waitFor(() => upstream.requests.some(({ head }) => head.includes('x-test: slow sender')), {
    what: 'the header section',
  });
  // Three attempts of another request in sequence take longer than one of this.
  const meanwhile = { 'x-script': 'hang', 'x-test': 'meanwhile' };
  t.equal((await proxy.get('/per-try/', { headers: meanwhile })).status, 504);
  sender.write('0\r\n\r\n');
  t.equal(parseMessage(await sender.readUntil('try 1')).status, 200);
  t.equal(attempts.get('slow sender')!.length, 1);
});

t.test('per_try_timeout does not apply once the response has started', async (t) => {
  const client = await connectRaw(t, proxy.port);
  client.write('GET /per-try/ HTTP/1.1\r\nhost: a\r\nx-script: stall\r\nx-test: slow response\r\n\r\n');
  await client.readUntil('half');
  const meanwhile = { 'x-script': 'hang', 'x-test': 'after the head' };
  t.equal((await proxy.get('/per-try/', { headers: meanwhile })).status, 504);
  attempts.get('slow response')![0]!.socket.write(', rest');
  t.equal(await client.readUntil('rest'), ', rest');
});

t.test('an idle attempt is retried, and an idle response that has started is aborted', async (t) => {
  const idled = 'cluster.raw.upstream_rq_per_try_idle_timeout';
  const { status, body } = await proxy.get('/idle/', { headers: { 'x-script': 'hang,200', 'x-test': 'idle' } });
  t.match({ status, body }, { status: 200, body: 'try 2' });
  t.equal(await proxy.baton.stat(idled), 1);
  const never = { 'x-script': 'hang', 'x-test': 'idle for ever' };
  t.match(await proxy.get('/idle/', { headers: never }), { status: 504, body: 'upstream request timeout' });
  const connection = await connectRaw(t, proxy.port);
  connection.write('GET /idle/ HTTP/1.1\r\nhost: a\r\nx-script: stall,200\r\nx-test: stalled\r\n\r\n');
  const { text } = await connection.readToEnd();
  t.match(parseMessage(text), { status: 200, rest: 'half' });
  t.equal(attempts.get('stalled')!.length, 1);
  await proxy.baton.waitForStat(idled, 4);
});

t.test('retries wait for their back-off', async (t) => {
  const headers = { 'x-script': '503,200', 'x-test': 'back-off' };
  t.match(await proxy.get('/patient/', { headers }), { status: 504, body: 'upstream request timeout' });
  t.equal(attempts.get('back-off')!.length, 1, 'the second attempt would start within an hour');
});

t.test('every attempt has the whole body and the trailers', async (t) => {
  const body = Buffer.from(Array.from({ length: 100_000 }, (_, index) => (index * 7919) % 251));
  const digest = createHash('sha256').update(body).digest('hex');
  t.equal((await proxy.get('/body/', { method: 'POST', body })).status, 200);
  t.same(bodies.splice(0), [`${digest} 1 `, `${digest} 2 `, `${digest} 3 `]);

  const chunked = await connectRaw(t, proxy.port);
  chunked.write('POST /body/ HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\ntrailer: x-end\r\n\r\n');
  chunked.write('3\r\nabc\r\n');
  // The first part is sent before the rest follows.
  chunked.write('2\r\nde\r\n0\r\nx-end: yes\r\n\r\n');
  t.equal(parseMessage(await chunked.readUntil('\r\n\r\n')).status, 200);
  const short = createHash('sha256').update('abcde').digest('hex');
  t.same(bodies.splice(0), [`${short} 1 yes`, `${short} 2 yes`, `${short} 3 yes`]);
});

t.test('a body beyond the buffer limit is not buffered: the request gets a single attempt', async (t) => {
  const body = Buffer.alloc(3000, 'x');
  const abandoned = 'cluster.reader.retry_or_shadow_abandoned';
  t.equal((await proxy.get('/large-body/', { method: 'POST', body })).status, 503);
  t.equal(bodies.splice(0).length, 1);
  await proxy.baton.waitForStat(abandoned, 1);
  t.equal((await proxy.get('/large-body/', { method: 'POST', body: body.subarray(0, 1000) })).status, 200);
  t.equal(bodies.splice(0).length, 3, 'a smaller one is retried');
  t.equal(await proxy.baton.stat(abandoned), 1);
});

t.test('a body is buffered up to the limit of its listener, unless its route overrides it', async (t) => {
  const retry_policy = { retry_on: '5xx', num_retries: 2, ...QUICKLY };
  const [large, small] = [{ request_body_buffer_limit: '10000000' }, { request_body_buffer_limit: '30000' }];
  const routes = [
    routeTo({ prefix: '/large' }, 'reader', { retry_policy }, large),
    routeTo({ prefix: '/small' }, 'reader', { retry_policy }, small),
    routeTo({ prefix: '/' }, 'reader', { retry_policy }),
  ];
  const virtualHost = { name: 'all', domains: ['*'], include_request_attempt_count: true, routes };
  const startWith = (limit: number) =>
    startProxy(t, {
      listeners: { main: { route_config: routeConfig([virtualHost]) } },
      clusters: [staticCluster('reader', reader.port)],
      listenerOptions: { per_connection_buffer_limit_bytes: limit },
    });
  const narrow = await startWith(32_768);
  t.equal((await narrow.get('/', { method: 'POST', body: Buffer.alloc(200_000, 'x') })).status, 503);
  t.equal(bodies.splice(0).length, 1);
  for (const [path, bytes] of [
    ['/', 20_000],
    ['/large', 200_000],
  ] as const) {
    t.equal((await narrow.get(path, { method: 'POST', body: Buffer.alloc(bytes, 'x') })).status, 200, path);
    t.equal(bodies.splice(0).length, 3);
  }
  const wide = await startWith(4_000_000);
  for (const path of ['/', '/large']) {
    t.equal((await wide.get(path, { method: 'POST', body: Buffer.alloc(2_000_000, 'x') })).status, 200, path);
    t.equal(bodies.splice(0).length, 3);
  }
  t.equal((await wide.get('/small', { method: 'POST', body: Buffer.alloc(40_000, 'x') })).status, 503);
  t.equal(bodies.splice(0).length, 1);
});

t.test('a response that has started is not retried', async (t) => {
  const connection = await connectRaw(t, proxy.port);
  connection.write('GET /5xx/ HTTP/1.1\r\nhost: a\r\nx-script: half,200\r\nx-test: begun\r\n\r\n');
  const { text } = await connection.readToEnd();
  t.match(parseMessage(text), { status: 200, rest: 'half' });
  t.equal(attempts.get('begun')!.length, 1);
});

t.test('retries are not sent after a 1xx response', async (t) => {
  for (const [script, status] of [
    ['early,200', 503],
    ['early-close,200', 503],
  ] as const) {
    const connection = await connectRaw(t, proxy.port);
    connection.write(`GET /5xx/ HTTP/1.1\r\nhost: a\r\nx-script: ${script}\r\nx-test: ${script}\r\n\r\n`);
    t.equal(parseMessage(await connection.readUntil('\r\n\r\n')).status, 103, script);
    t.equal(
      parseMessage(await connection.readUntil('\r\n\r\n')).status,
      status,
      `${script}: the response of the same attempt`,
    );
    t.equal(attempts.get(script)!.length, 1);
  }
});

t.test('the connection of a discarded response is reused only when the request is complete too', async (t) => {
  const { baton } = proxy;
  const complete = await proxy.get('/kept/', { headers: { 'x-script': 'bare,200', 'x-test': 'kept' } });
  t.equal(complete.body, 'try 2');
  const [first, second] = attempts.get('kept')!;
  t.equal(second!.socket, first!.socket, 'the next attempt uses it');
  t.equal(await baton.stat('cluster.kept.upstream_cx_total'), 1);
  t.equal(await baton.stat('cluster.kept.upstream_rq_tx_reset'), 0);

  const connection = await connectRaw(t, proxy.port);
  const head = 'host: a\r\nx-script: bare,hang\r\nx-test: upload\r\ncontent-length: 8\r\n\r\n';
  connection.write(`POST /kept/ HTTP/1.1\r\n${head}half`);
  await waitFor(() => attempts.get('upload')?.length === 2);
  const [early, late] = attempts.get('upload')!;
  await waitFor(() => early!.socket.destroyed, { what: 'the connection with the incomplete request to close' });
  await baton.waitForStat('cluster.kept.upstream_cx_active', 1);
  connection.write('rest');
  late!.socket.write(response(200, 'try 2'));
  t.match(parseMessage(await connection.readUntil('try 2')), { status: 200 });
  await baton.waitForStat('cluster.kept.upstream_rq_active', 0);
});

t.test('a request is not retried after its client has disconnected', async (t) => {
  const remaining = 'cluster.raw.circuit_breakers.default.remaining_retries';
  const before = await proxy.baton.stat(remaining);
  const retriesBefore = (await proxy.baton.stat('cluster.raw.upstream_rq_retry')) ?? 0;
  const connection = await connectRaw(t, proxy.port);
  connection.write('GET /later/ HTTP/1.1\r\nhost: a\r\nx-script: 503,200\r\nx-test: left\r\n\r\n');
  // The retry is scheduled: no attempt is in flight.
  await proxy.baton.waitForStat('cluster.raw.upstream_rq_retry', retriesBefore + 1);
  await proxy.baton.waitForStat(remaining, before! - 1);
  connection.reset();
  await proxy.baton.waitForStat('http.main.downstream_rq_active', 0);
  t.equal(attempts.get('left')!.length, 1);
  await proxy.baton.waitForStat(remaining, before!);
});

function retryRoutes(): Config[] {
  const policy = (name: string, retry: Config, action: Config = {}, cluster = 'raw', more: Config = {}) =>
    routeTo({ prefix: `/${name}/` }, cluster, { retry_policy: { ...QUICKLY, ...retry }, ...action }, more);
  return [
    routeTo({ prefix: '/none/' }, 'raw'),
    policy('5xx', { retry_on: '5xx' }),
    policy('kept', { retry_on: '5xx' }, {}, 'kept'),
    policy('four', { retry_on: '5xx', num_retries: 4 }),
    policy('gateway-error', { retry_on: 'gateway-error' }),
    policy('reset', { retry_on: 'reset' }),
    policy('connect-failure', { retry_on: 'connect-failure' }),
    policy('retriable-4xx', { retry_on: 'retriable-4xx' }),
    policy('codes', { retry_on: 'retriable-status-codes', retriable_status_codes: [418] }),
    policy('headers', { retry_on: 'retriable-headers', retriable_headers: [{ name: 'x-again', present_match: true }] }),
    policy('unsent', { retry_on: 'retriable-4xx,reset-before-request', num_retries: 5 }, {}, 'half'),
    policy('two', { retry_on: 'reset,retriable-4xx', num_retries: 5 }),
    policy('marked', { retry_on: '5xx', retriable_request_headers: [{ name: 'x-idempotent', present_match: true }] }),
    policy('per-try', { retry_on: '5xx', num_retries: 2, per_try_timeout: '0.25s' }),
    policy('never', { retry_on: 'retriable-4xx', num_retries: 0 }),
    policy('idle', { retry_on: '5xx', per_try_idle_timeout: '0.25s' }),
    policy('whole', { retry_on: '5xx', num_retries: 100, per_try_timeout: '0.2s' }, { timeout: '0.5s' }),
    policy(
      'patient',
      { retry_on: '5xx', retry_back_off: { base_interval: '3600s', max_interval: '3600s' } },
      { timeout: '0.3s' },
    ),
    policy('later', { retry_on: '5xx', retry_back_off: { base_interval: '3600s', max_interval: '3600s' } }),
    policy('body', { retry_on: '5xx', num_retries: 2 }, {}, 'reader'),
    policy('large-body', { retry_on: '5xx', num_retries: 2 }, {}, 'reader', { per_request_buffer_limit_bytes: 2000 }),
    routeTo({ prefix: '/failure/half' }, 'half', { retry_policy: { retry_on: 'connect-failure', ...QUICKLY } }),
    routeTo({ prefix: '/failure/deaf' }, 'deaf', { retry_policy: { retry_on: 'connect-failure', ...QUICKLY } }),
    routeTo({ prefix: '/failure/closed' }, 'closed', { retry_policy: { retry_on: 'connect-failure', ...QUICKLY } }),
  ];
}
