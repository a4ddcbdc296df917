// testFilter() of baton/testing: a filter without sockets behaves as it does in Baton.

import t from 'tap';
import { defineHttpFilter } from '../../src/api/index.js';
import { testFilter } from '../../src/testing/index.js';

t.test('the host and the client get what the hooks have made of the messages', async (t) => {
  const filter = defineHttpFilter({
    async onRequest(request, ctx) {
      request.headers.set('x-name', 'ü');
      request.setBody((await request.text()).toUpperCase());
      ctx.setCluster('other');
      ctx.metadata.set('own', { user: 'ann' });
    },
    async onResponse(response) {
      response.headers.delete('content-length');
      for await (const piece of response.body) piece.replace(`${piece.text()}!`);
    },
    onStreamEnd(end, ctx) {
      ctx.stats.count(`ended_${end.status}`, 2);
      ctx.log.info(end.details);
    },
  });
  const result = await testFilter(filter, {
    request: {
      path: '/a?b=c',
      headers: { 'x-multi': ['1', '2'] },
      body: ['hello ', 'world'],
      trailers: { 'x-t': '1' },
    },
    response: (request) => ({ status: 201, body: [request.text, 'b'], trailers: { 'x-end': 'yes' } }),
  });
  t.match(result.forwarded, {
    ...{
      method: 'POST',
      path: '/a?b=c',
      host: 'test',
      cluster: 'other',
      text: 'HELLO WORLD',
      trailers: { 'x-t': '1' },
    },
    headers: { 'x-name': 'ü', 'x-multi': '1, 2', 'content-length': '11' },
  });
  t.match(result.response, { status: 201, pieces: ['HELLO WORLD!', 'b!'], trailers: { 'x-end': 'yes' } });
  t.strictSame(result.metadata, { own: { user: 'ann' } });
  t.strictSame(result.stats.counters, { ended_201: 2 });
  t.strictSame(result.log, [{ level: 'info', text: 'via_upstream' }]);
});

t.test('a reply answers, and is not seen by the filter itself', async (t) => {
  const filter = defineHttpFilter({
    onRequest: (_request, ctx) => ctx.reply(403, 'no', { 'x-why': 'so' }),
    onResponse: (response) => response.headers.set('x-own', 'yes'),
  });
  const { forwarded, response } = await testFilter(filter);
  t.equal(forwarded, undefined);
  t.match(response, { status: 403, text: 'no', headers: { 'x-why': 'so', 'x-own': undefined } });
});

t.test('a failed hook fails the test, or does what failurePolicy says', async (t) => {
  const filter = defineHttpFilter({
    onResponse() {
      throw new Error('mine');
    },
  });
  await t.rejects(testFilter(filter), { message: 'mine' });
  const closed = await testFilter(filter, { failurePolicy: 'CLOSED' });
  t.match(closed, { response: { status: 500 }, failures: [{ hook: 'onResponse', thrown: { message: 'mine' } }] });
  t.match(await testFilter(filter, { failurePolicy: 'OPEN', response: { body: 'b' } }), { response: { text: 'b' } });
  const late = defineHttpFilter({ onRequest: () => new Promise<void>(() => {}) });
  await t.rejects(testFilter(late, { timeoutMs: 5 }), { message: 'it has not ended within 5 ms' });
});

t.test('a failure after the head cuts the response off', async (t) => {
  const filter = defineHttpFilter({
    async onResponse(response) {
      for await (const piece of response.body) if (piece.text() === 'b') throw new Error('mine');
    },
  });
  const result = await testFilter(filter, { response: { body: ['a', 'b', 'c'] }, failurePolicy: 'CLOSED' });
  t.match(result, { isCutOff: true, response: { text: 'a' } });
});

t.test('clusters, runtime, connection and route come from the test', async (t) => {
  const filter = defineHttpFilter<{ readonly limit: number }>({
    config: (given) => given as { limit: number },
    async onRequest(request, ctx) {
      const answer = await ctx.fetch('keys', '/k', { body: 'a', headers: { 'X-Own': '1' } });
      if (request.path === '/rematch') {
        request.path = '/other';
        ctx.rematchRoute();
      }
      const facts = [answer.status, answer.text(), ctx.runtime.number('own.n', 1), ctx.connection.remoteAddress];
      request.headers.set('x-facts', [...facts, ctx.route?.name, ctx.config.limit].join());
    },
  });
  const test = {
    config: { limit: 3 },
    clusters: {
      keys: (request: { method: string; text: string }) => ({ status: 202, body: request.method + request.text }),
    },
    runtime: { 'own.n': 7 },
    connection: { remoteAddress: '192.0.2.1:5' },
    route: { name: 'main', cluster: 'a' },
  };
  const { forwarded } = await testFilter(filter, test);
  t.match(forwarded, { cluster: 'a', headers: { 'x-facts': '202,POSTa,7,192.0.2.1:5,main,3' } });
  await t.rejects(testFilter(filter, { ...test, clusters: {} }), { message: /there is no cluster 'keys'/ });
  const routes = ['first', 'second'].map((cluster) => ({ cluster }));
  const again = await testFilter(filter, { ...test, request: { path: '/rematch' }, route: () => routes.shift()! });
  t.match(again.forwarded, { path: '/other', cluster: 'second' });
});

t.test('timers and the signal end with the request', async (t) => {
  const signals: AbortSignal[] = [];
  const filter = defineHttpFilter({
    onRequest(_request, ctx) {
      signals.push(ctx.signal);
      ctx.setTimeout(() => t.fail('a timer outlived the request'), 3_600_000);
    },
  });
  await testFilter(filter);
  t.equal(signals[0]!.aborted, true);
});

t.test('format() has the operators of access logs, except those for headers', async (t) => {
  const texts: string[] = [];
  const filter = defineHttpFilter({
    onRequest(_request, ctx) {
      ctx.metadata.set('own', { key: 'kept' });
      texts.push(ctx.format('%DYNAMIC_METADATA(own:key)% %DOWNSTREAM_TLS_CIPHER% %ROUTE_NAME%'));
      t.throws(() => ctx.format('%REQ(HOST)%'), /no operators for headers/);
      t.throws(() => ctx.format('%NO_SUCH%'), /NO_SUCH/);
    },
    onStreamEnd: (_end, ctx) => void texts.push(ctx.format('%RESPONSE_CODE%')),
  });
  await testFilter(filter, { response: { status: 201 } });
  t.same(texts, ['kept - -', '201']);
});

t.test('toRequest() gives a Request of the Fetch API', async (t) => {
  const filter = defineHttpFilter({
    async onRequest(_request, ctx) {
      const request = await ctx.toRequest();
      return ctx.reply(200, [request.method, request.url, request.headers.get('x-own'), await request.text()].join());
    },
  });
  const post = { path: '/a?b', host: 'example.com', headers: { 'x-own': 'y' }, body: 'text' };
  t.equal((await testFilter(filter, { request: post })).response?.text, 'POST,http://example.com/a?b,y,text');
  t.equal((await testFilter(filter)).response?.text, 'GET,http://test/,,');
  const late = defineHttpFilter({ onResponse: async (_response, ctx) => void (await ctx.toRequest()) });
  await t.rejects(testFilter(late), { message: 'toRequest() works in onRequest only' });
});

t.test('a definition with a mistake is refused', async (t) => {
  await t.rejects(testFilter({} as never), { message: /not made with defineHttpFilter/ });
  const strict = defineHttpFilter({
    config() {
      throw new Error('limit is missing');
    },
    onRequest() {},
  });
  await t.rejects(testFilter(strict), { message: 'limit is missing' });
});

t.test('a test that fails leaves no timer', async (t) => {
  const signals: AbortSignal[] = [];
  const filter = defineHttpFilter({
    onRequest(_request, ctx) {
      signals.push(ctx.signal);
      ctx.setTimeout(() => t.fail('a timer outlived the test'), 3_600_000);
    },
  });
  const response = () => {
    throw new Error('in the test');
  };
  await t.rejects(testFilter(filter, { response }), { message: 'in the test' });
  t.equal(signals[0]!.aborted, true);
});
