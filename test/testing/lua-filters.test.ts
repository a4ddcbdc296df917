// What ten public Lua filters of Envoy do, written with the calls that the table in docs/filters-in-typescript.md gives for theirs.

import { readFileSync } from 'node:fs';
import t from 'tap';
import { defineHttpFilter } from '../../src/api/index.js';
import { packagePath } from '../../src/common/package/package-root.js';
import { API } from '../../src/extensions/filters/http/lua/api.js';
import { testFilter } from '../../src/testing/index.js';

t.test("the table has every function of Envoy's API", async (t) => {
  const page = readFileSync(packagePath('docs/filters-in-typescript.md'), 'utf8');
  const table = page.slice(page.indexOf("## From Envoy's Lua filter"), page.indexOf('## Failures'));
  const names = new Set(API.flat().map(([name]) => name));
  const internal = ['__pairs', 'next'];
  const missing = [...names].filter((name) => !internal.includes(name) && !new RegExp(`\\b${name}\\b`).test(table));
  t.same(missing, []);
});

t.test('1: dynamic metadata of an earlier filter becomes headers', async (t) => {
  // streamInfo():dynamicMetadata():get(), headers():add()
  const filter = defineHttpFilter({
    onRequest(request, ctx) {
      ctx.metadata.set('mesh', { service: 'web', datacenter: 'dc1' });
      const { datacenter, service } = ctx.metadata.get('mesh') ?? {};
      request.headers.append('x-service', String(service));
      request.headers.append('x-datacenter', String(datacenter));
    },
  });
  t.match((await testFilter(filter)).forwarded?.headers, { 'x-service': 'web', 'x-datacenter': 'dc1' });
});

t.test('2: the answer of another service is the answer', async (t) => {
  // httpCall(), respond() with headers of the call
  const filter = defineHttpFilter({
    async onRequest(_request, ctx) {
      const answer = await ctx.fetch('api', '/', { headers: { host: 'api' } });
      return ctx.reply(200, answer.text(), { 'x-foo': answer.headers.get('foo') ?? '' });
    },
  });
  const api = () => ({ headers: { foo: 'bar' }, body: 'from api' });
  t.match(await testFilter(filter, { clusters: { api } }), {
    forwarded: undefined,
    response: { text: 'from api', headers: { 'x-foo': 'bar' } },
  });
});

t.test('3: the name of the latest snapshot in a repository is asked for, and replaces that in the path', async (t) => {
  // headers():get(':path'), httpCall(), headers():replace(':path', …)
  const filter = defineHttpFilter({
    async onRequest(request, ctx) {
      const [, folder, name] = /^(.*)\/(.*-)SNAPSHOT\.jar$/.exec(request.pathname) ?? [];
      if (folder === undefined) return;
      const metadata = (await ctx.fetch('repository', `${folder}/maven-metadata.xml`)).text();
      const [, value] = /<extension>jar<\/extension>\s*<value>.*-(.*?)<\/value>/.exec(metadata) ?? [];
      request.path = `${folder}/${name}${value}.jar`;
    },
  });
  const repository = () => ({ body: '<extension>jar</extension> <value>1.0-42</value>' });
  const request = { path: '/a/1.0/lib-SNAPSHOT.jar' };
  const { forwarded } = await testFilter(filter, { request, clusters: { repository } });
  t.equal(forwarded?.path, '/a/1.0/lib-42.jar');
});

t.test('4: a penalty by the identity in the client certificate', async (t) => {
  // streamInfo():downstreamSslConnection():uriSanPeerCertificate(), httpCall(), respond() with 429
  const filter = defineHttpFilter({
    async onRequest(_request, ctx) {
      const id = ctx.connection.tls?.peerUris[0] ?? '';
      const answer = await ctx.fetch('counter', `/GET/${encodeURIComponent(id)}`, { timeoutMs: 1000 });
      if (!answer.ok || answer.json().GET > 10) return ctx.reply(429, JSON.stringify({ message: 'wait' }));
      return undefined;
    },
  });
  const connection = { tls: { serverName: '', version: 'TLSv1.3', peerSubject: '', peerUris: ['spiffe://a/b'] } };
  const run = (value: number) =>
    testFilter(filter, {
      connection,
      clusters: { counter: ({ path }) => ({ body: JSON.stringify({ GET: path.endsWith('%2Fb') ? value : 99 }) }) },
    });
  t.equal((await run(1)).response?.status, 200);
  t.equal((await run(11)).response?.status, 429);
});

t.test('5: each element of a JSON body is sent to a store, without waiting', async (t) => {
  // body():getBytes(), httpCall(…, true), base64Escape()
  const filter = defineHttpFilter({
    async onRequest(request, ctx) {
      const { alerts } = (await request.json()) as { alerts: { key: string }[] };
      const authorization = `Basic ${Buffer.from('user:word').toString('base64')}`;
      for (const alert of alerts)
        void ctx.fetch('store', `/alerts/${alert.key}`, { body: JSON.stringify(alert), headers: { authorization } });
    },
  });
  const stored: string[] = [];
  const store = (request: { path: string; headers: Readonly<Record<string, string>> }) => {
    stored.push(`${request.path} ${request.headers['authorization']}`);
    return {};
  };
  const body = JSON.stringify({ alerts: [{ key: 'a' }, { key: 'b' }] });
  t.equal((await testFilter(filter, { request: { body }, clusters: { store } })).forwarded?.text, body);
  t.strictSame(stored, ['/alerts/a Basic dXNlcjp3b3Jk', '/alerts/b Basic dXNlcjp3b3Jk']);
});

t.test('6: a token of another service is added, and kept as long as it is valid', async (t) => {
  // httpCall(), a global table as cache, os.time()
  let cached: { value: string; until: number } | undefined;
  const filter = defineHttpFilter({
    async onRequest(request, ctx) {
      if (cached === undefined || cached.until < Date.now()) {
        const answer = await ctx.fetch('auth', '/token', {
          headers: { 'content-type': 'application/x-www-form-urlencoded' },
          body: 'grant_type=client_credentials',
        });
        const { access_token, expires_in } = answer.json();
        cached = { value: access_token, until: Date.now() + expires_in * 1000 };
      }
      request.headers.set('authorization', `Bearer ${cached.value}`);
    },
  });
  let asked = 0;
  const auth = () => ({ body: JSON.stringify({ access_token: `t${++asked}`, expires_in: 60 }) });
  for (let i = 0; i < 2; i++) {
    const { forwarded } = await testFilter(filter, { clusters: { auth } });
    t.equal(forwarded?.headers['authorization'], 'Bearer t1');
  }
  t.equal(asked, 1);
});

t.test('7: a page instead of an empty 404', async (t) => {
  // headers():get(':status'), headers():replace(), body():setBytes()
  const filter = defineHttpFilter({
    onResponse(response) {
      if (response.status !== 404 || response.headers.get('content-type')?.includes('text/html')) return;
      response.headers.set('content-type', 'text/html; charset=utf-8');
      response.setBody('<h1>Not found</h1>');
    },
  });
  const { response } = await testFilter(filter, { response: { status: 404, body: 'nothing' } });
  t.match(response, { status: 404, text: '<h1>Not found</h1>', headers: { 'content-length': '18' } });
  const own = { status: 404, headers: { 'content-type': 'text/html' }, body: 'mine' };
  t.equal((await testFilter(filter, { response: own })).response?.text, 'mine');
});

t.test('8: gRPC trailers are removed from JSON responses', async (t) => {
  // trailers(), remove()
  const filter = defineHttpFilter({
    async onResponse(response) {
      if (response.headers.get('content-type') !== 'application/json') return;
      await response.bytes();
      for (const name of ['grpc-status', 'grpc-message']) response.trailers.delete(name);
    },
  });
  const trailers = { 'grpc-status': '0', 'grpc-message': '', 'x-other': '1' };
  const json = { headers: { 'content-type': 'application/json' }, body: ['{}'], trailers };
  t.strictSame((await testFilter(filter, { response: json })).response?.trailers, { 'x-other': '1' });
});

t.test('9: a request is sent to the sign-in service, and its redirects become 303', async (t) => {
  // headers():replace(':path' and ':authority'), headers():replace(':status', …), logDebug()
  const filter = defineHttpFilter({
    onRequest(request, ctx) {
      request.headers.set('x-redirect-uri', `https://${request.host}${request.path}`);
      const { search } = new URL(request.path, 'http://any');
      request.path = `/authorize${search}`;
      request.host = 'signin';
      ctx.log.debug(`to ${request.path}`);
    },
    onResponse(response) {
      if (response.headers.get('location')) response.status = 303;
    },
  });
  const result = await testFilter(filter, {
    request: { path: '/a?b=c', host: 'app' },
    response: { status: 302, headers: { location: '/in' } },
  });
  t.match(result.forwarded, {
    path: '/authorize?b=c',
    host: 'signin',
    headers: { 'x-redirect-uri': 'https://app/a?b=c' },
  });
  t.equal(result.response?.status, 303);
});

t.test('10: methods that a path does not have are answered with 405', async (t) => {
  // headers():get(':method'), string.match(), respond()
  const allowed: readonly [RegExp, readonly string[]][] = [[/^\/users\/[^/]+$/, ['GET', 'DELETE']]];
  const filter = defineHttpFilter({
    onRequest(request, ctx) {
      const [, methods] = allowed.find(([path]) => path.test(request.pathname)) ?? [];
      if (methods === undefined) return ctx.reply(404, 'not found');
      if (!methods.includes(request.method)) return ctx.reply(405, '', { allow: methods.join(', ') });
      return undefined;
    },
  });
  const status = async (method: string, path: string) =>
    (await testFilter(filter, { request: { method, path } })).response?.status;
  t.equal(await status('GET', '/users/1?all'), 200);
  t.equal(await status('POST', '/users/1'), 405);
  t.equal(await status('GET', '/other'), 404);
});
