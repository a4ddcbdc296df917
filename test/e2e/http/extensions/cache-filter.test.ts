// The HTTP filter cache: what it stores, serves and validates. The expected results are those of Envoy 1.40, whose cache ends the process at
// the first response with vary; those cases run with Baton only.

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { besideEnvoy, type ProxyProgram } from '../../harness/envoy.js';
import {
  bootstrap,
  type Config,
  fileAccessLog,
  type HttpRequestOptions,
  httpListener,
  httpRequest,
  ROUTER_FILTER,
  startBaton,
  startUpstream,
  staticCluster,
  type Teardown,
  tempDir,
  waitFor,
} from '../../harness/index.js';
import { managerOf, routeTo } from '../proxy.js';

const CACHE = 'type.googleapis.com/envoy.extensions.filters.http.cache.v3.CacheConfig';
const SIMPLE = 'type.googleapis.com/envoy.extensions.http.cache.simple_http_cache.v3.SimpleHttpCacheConfig';
const FRESH = { 'cache-control': 'max-age=100' };
const OLD = 'Sun, 06 Nov 1994 08:49:37 GMT';

/** What the host answers, by the path. */
interface Reply {
  readonly status?: number;
  readonly headers?: Record<string, string | string[]>;
  readonly body?: string;
  /** Answers a request with if-none-match. */
  readonly notModified?: Record<string, string>;
  readonly trailers?: boolean;
}

interface Rig {
  /** Sends a request for the reply. Returns the status, the number of the host's response, the age and the body. */
  readonly ask: (name: string, options?: HttpRequestOptions) => Promise<string>;
  readonly head: (name: string, options?: HttpRequestOptions) => Promise<Record<string, string>>;
  /** The heads of the requests that the host has received. */
  readonly received: Record<string, string>[];
  readonly logged: (lines: number) => Promise<string[]>;
}

async function start(
  t: Teardown,
  program: ProxyProgram,
  replies: Record<string, Reply>,
  cache: Config = {},
): Promise<Rig> {
  const received: Record<string, string>[] = [];
  const upstream = await startUpstream(t, (request, answer) => {
    received.push(request.headers as Record<string, string>);
    const reply = replies[request.url!.slice(1).replace(/\?.*/, '')] ?? {};
    if (reply.notModified !== undefined && request.headers['if-none-match'] !== undefined) {
      answer.writeHead(304, reply.notModified).end();
      return;
    }
    for (const [name, value] of Object.entries(reply.headers ?? FRESH)) answer.setHeader(name, value);
    answer.setHeader('x-n', String(received.length));
    answer.statusCode = reply.status ?? 200;
    const body = reply.body ?? '0123456789';
    if (reply.trailers === true) {
      answer.setHeader('trailer', 'x-t');
      answer.write(body);
      answer.addTrailers({ 'x-t': 'end' });
      answer.end();
    } else answer.end(request.method === 'HEAD' ? undefined : body);
  });
  const log = join(tempDir(t), 'log');
  const filter = { name: 'cache', typed_config: { '@type': CACHE, typed_config: { '@type': SIMPLE }, ...cache } };
  const config = managerOf([routeTo({ prefix: '/' }, 'host')], {
    access_log: [fileAccessLog(log, '%RESPONSE_FLAGS% %RESPONSE_CODE_DETAILS%\n')],
    http_filters: [filter, ROUTER_FILTER],
  });
  const baton = await startBaton(t, {
    ...program,
    args: ['--file-flush-interval-msec', '20'],
    config: bootstrap({
      listeners: [httpListener('http', 0, config)],
      clusters: [{ ...staticCluster('host', upstream.port), http_protocol_options: { enable_trailers: true } }],
    }),
  });
  const port = await baton.listenerPort('http');
  const send = (name: string, options?: HttpRequestOptions) => httpRequest(port, `/${name}`, options);
  return {
    received,
    async ask(name, options) {
      const { body, headers, status } = await send(name, options);
      return [status, headers['x-n'], headers.age ?? '-', body].join(' ');
    },
    async head(name, options) {
      const { headers } = await send(name, options);
      return headers as Record<string, string>;
    },
    async logged(count) {
      const lines = () => readFileSync(log, 'utf8').split('\n').slice(0, -1);
      await waitFor(() => lines().length >= count, { what: 'the lines of all requests' });
      return lines();
    },
  };
}

/** Whether the second answer is the stored one. The age depends on the time. */
const isHit = (first: string, second: string) => second.replace(/ \d+ (?=\S*$)/, ' - ') === first;

besideEnvoy('responses are stored by their status and their directives', async (t, program) => {
  const { ask } = await start(t, program, {
    404: { status: 404 },
    301: { status: 301 },
    410: { status: 410 },
    500: { status: 500 },
    302: { status: 302 },
    private: { headers: { 'cache-control': 'private, max-age=9' } },
    store: { headers: { 'cache-control': 'no-store' } },
    plain: { headers: {} },
    expires: { headers: { expires: 'Sun, 06 Nov 2094 08:49:37 GMT' } },
    shared: { headers: { 'cache-control': 'max-age=0, s-maxage=50' } },
    two: { headers: { 'cache-control': ['public', 'max-age=50'] } },
    cookie: { headers: { ...FRESH, 'set-cookie': 'a=b' } },
    empty: { body: '' },
  });
  for (const name of ['404', '301', '410', 'expires', 'shared', 'two', 'cookie', 'empty', 'any']) {
    const first = await ask(name);
    t.ok(isHit(first, await ask(name)), `${name} is stored`);
  }
  for (const name of ['500', '302', 'private', 'store', 'plain'])
    t.notOk(isHit(await ask(name), await ask(name)), `${name} is not stored`);
});

besideEnvoy('a stored response is sent with its age, to GET and HEAD, and logged', async (t, program) => {
  const { ask, head, logged, received } = await start(t, program, { aged: { headers: { ...FRESH, age: '40' } } });
  t.equal(await ask('a'), '200 1 - 0123456789');
  t.match(await ask('a'), /^200 1 [01] 0123456789$/);
  t.match(await ask('a', { method: 'HEAD' }), /^200 1 [01] $/);
  t.match(await head('a'), { 'content-length': '10', 'cache-control': 'max-age=100' });
  await ask('aged');
  t.match(await ask('aged'), /^200 2 4[01] /);
  t.equal(await ask('a?q'), '200 3 - 0123456789', 'another query');
  t.equal(await ask('a', { headers: { host: 'other' } }), '200 4 - 0123456789', 'another host');
  t.equal(await ask('b', { method: 'HEAD' }), '200 5 - ', 'responses to HEAD are not stored');
  t.equal(await ask('b'), '200 6 - 0123456789');
  t.equal(received.length, 6);
  t.strictSame((await logged(3)).slice(0, 3), [
    '- via_upstream',
    'RFCF cache.response_from_cache_filter',
    'RFCF cache.response_from_cache_filter',
  ]);
});

besideEnvoy('requests with these fields are not answered from the cache', async (t, program) => {
  const { ask, received } = await start(t, program, {});
  await ask('a');
  for (const headers of [
    { authorization: 'x' },
    { 'if-none-match': '"x"' },
    { 'if-modified-since': OLD },
    { 'if-range': '"x"', range: 'bytes=0-1' },
    { 'cache-control': 'no-cache' },
    { pragma: 'no-cache' },
    { 'cache-control': 'min-fresh=1000' },
  ] as Record<string, string>[]) {
    const before = received.length;
    await ask('a', { headers });
    t.equal(received.length, before + 1, JSON.stringify(headers));
  }
  const before = received.length;
  await ask('a', { method: 'POST', body: 'x' });
  t.equal(received.length, before + 1, 'POST');
  await ask('a', { headers: { 'cache-control': 'no-store' } });
  await ask('a', { headers: { 'if-match': '"x"' } });
  t.equal(received.length, before + 1, 'these are');
  await ask('unstored', { headers: { 'cache-control': 'no-store' } });
  await ask('unstored');
  t.equal(received.length, before + 3, 'no-store of a request keeps its response from the cache');
});

besideEnvoy('a stale response is sent after its host has confirmed it', async (t, program) => {
  const notModified = { 'cache-control': 'no-cache', etag: '"e"', 'x-new': 'yes' };
  const { ask, head, logged, received } = await start(t, program, {
    valid: {
      headers: { 'cache-control': 'no-cache', etag: '"e"', 'last-modified': OLD, 'x-old': 'kept' },
      notModified,
    },
    changed: { headers: { 'cache-control': 'no-cache', 'last-modified': OLD } },
  });
  t.equal(await ask('valid'), '200 1 - 0123456789');
  t.equal(await ask('valid'), '200 1 - 0123456789');
  t.match(received[1], { 'if-none-match': '"e"', 'if-modified-since': OLD });
  t.match(await head('valid'), { 'x-old': 'kept', 'x-new': 'yes', 'content-length': '10', etag: '"e"' });
  t.equal(await ask('valid', { method: 'HEAD' }), '200 1 - ');
  t.equal(await ask('valid', { headers: { range: 'bytes=0-1' } }), '200 1 - 0123456789', 'the whole response');
  t.equal(await ask('changed'), '200 6 - 0123456789');
  t.equal(await ask('changed'), '200 7 - 0123456789', 'the host has another response');
  t.match(received[6], { 'if-modified-since': OLD });
  t.equal((await logged(2))[1], 'RFCF cache.response_from_cache_filter');
});

besideEnvoy('ranges of stored responses', async (t, program) => {
  const { ask, head } = await start(t, program, {});
  await ask('a');
  const range = async (value: string) =>
    (await ask('a', { headers: { range: value } })).replace(/^(\d+) 1 \d+ /, '$1 ');
  t.equal(await range('bytes=2-4'), '206 234');
  t.equal(await range('bytes=2-'), '206 23456789');
  t.equal(await range('bytes=-3'), '206 789');
  t.equal(await range('bytes=8-99'), '206 89');
  t.equal(await range('bytes=20-30'), '416 ');
  t.equal(await range('bytes=0-9'), '200 0123456789');
  t.equal(await range('bytes=1-2,4-5'), '200 0123456789');
  t.equal(await range('lines=1'), '200 0123456789');
  t.match(await head('a', { headers: { range: 'bytes=2-4' } }), {
    'content-range': 'bytes 2-4/10',
    'content-length': '3',
  });
  t.match(await head('a', { headers: { range: 'bytes=20-30' } }), { 'content-range': 'bytes */10' });
});

besideEnvoy('directives of requests may be ignored, and the filter disabled', async (t, program) => {
  const ignoring = await start(t, program, {}, { ignore_request_cache_control_header: true });
  await ignoring.ask('a');
  t.match(await ignoring.ask('a', { headers: { 'cache-control': 'no-cache' } }), /^200 1 [01] /);
  const disabled = await start(t, program, {}, { disabled: true });
  await disabled.ask('a');
  t.equal(await disabled.ask('a'), '200 2 - 0123456789');
});

t.test('responses vary by the permitted fields of requests', async (t) => {
  const { ask, received } = await start(
    t,
    { command: undefined },
    {
      by: { headers: { ...FRESH, vary: 'Accept' } },
      other: { headers: { ...FRESH, vary: 'accept, cookie' } },
      any: { headers: { ...FRESH, vary: '*' } },
    },
    { allowed_vary_headers: [{ exact: 'accept' }] },
  );
  const by = (accept: string) => ask('by', { headers: { accept } });
  t.equal(await by('x'), '200 1 - 0123456789');
  t.equal(await by('y'), '200 2 - 0123456789');
  t.match(await by('x'), /^200 1 [01] /);
  t.match(await by('y'), /^200 2 [01] /);
  t.equal(await ask('by'), '200 3 - 0123456789', 'without the field');
  for (const name of ['other', 'any']) {
    await ask(name);
    const before = received.length;
    await ask(name);
    t.equal(received.length, before + 1, `${name} is not stored`);
  }
});

t.test('bodies above the limit, and responses with trailers, are not stored', async (t) => {
  const { ask } = await start(
    t,
    { command: undefined },
    { long: { body: 'x'.repeat(11) }, trailers: { trailers: true } },
    { max_body_bytes: 10 },
  );
  for (const name of ['long', 'trailers']) t.notOk(isHit(await ask(name), await ask(name)), name);
  const first = await ask('short');
  t.ok(isHit(first, await ask('short')));
});

t.test('the least recently used responses go when the memory of a worker is used up', async (t) => {
  const body = 'x'.repeat(3_500_000);
  const names = Array.from({ length: 14 }, (_, index) => `f${index}`);
  const rig = await start(t, { command: undefined }, Object.fromEntries(names.map((name) => [name, { body }])));
  const ask = async (name: string) => (await rig.ask(name)).length;
  for (const name of names) t.ok((await ask(name)) > body.length);
  const before = rig.received.length;
  await ask('f13');
  t.equal(rig.received.length, before, 'the last one is stored');
  await ask('f0');
  t.equal(rig.received.length, before + 1, 'the first one is gone');
});

t.test('caches that Baton does not have are refused by name', async (t) => {
  const refused = async (typed_config: Config) => {
    const filter = { name: 'cache', typed_config };
    const manager = managerOf([], { http_filters: [filter, ROUTER_FILTER] });
    const baton = await startBaton(t, {
      args: ['--mode', 'validate'],
      wait: 'spawned',
      config: bootstrap({ listeners: [httpListener('http', 0, manager)], clusters: [] }),
    });
    t.equal((await baton.exited).code, 1);
    return baton.stderr;
  };
  const files = 'type.googleapis.com/envoy.extensions.http.cache.file_system_http_cache.v3.FileSystemHttpCacheConfig';
  t.match(await refused({ '@type': CACHE, typed_config: { '@type': files } }), /file_system_http_cache/);
  t.match(await refused({ '@type': CACHE }), /at least one of typed_config or disabled must be set/);
  t.match(await refused({ '@type': CACHE.replace('cache.v3.CacheConfig', 'cache_v2.v3.CacheV2Config') }), /cache_v2/);
});
