// Filters in examples/filters, without a running Baton. test/e2e/http/scripts/examples.test.ts has those that need one.

import { createHmac } from 'node:crypto';
import t from 'tap';
import modelBudget from '../../examples/filters/model-budget.js';
import modelFallback from '../../examples/filters/model-fallback.js';
import rewriteBody from '../../examples/filters/rewrite-body.js';
import shadow from '../../examples/filters/shadow.js';
import signRequests from '../../examples/filters/sign-requests.js';
import { testFilter } from '../../src/testing/index.js';

t.test('rewrite-body', async (t) => {
  const html = { headers: { 'content-type': 'text/html; charset=utf-8' }, body: '<a href="http://in/ü">in</a>' };
  const { forwarded, response } = await testFilter(rewriteBody, {
    config: { from: 'http://in/', to: 'https://example.com/' },
    request: { headers: { 'accept-encoding': 'gzip' } },
    response: html,
  });
  t.equal(forwarded?.headers['accept-encoding'], undefined);
  t.match(response, { text: '<a href="https://example.com/ü">in</a>', headers: { 'content-length': '39' } });
});

t.test('shadow', async (t) => {
  const copies: string[] = [];
  const test = {
    config: { cluster: 'shadow' },
    clusters: {
      shadow: (request: { method: string; path: string; host: string; text: string }) => {
        copies.push([request.method, request.path, request.host, request.text].join());
        return { status: 500 };
      },
    },
    response: { body: 'main' },
  };
  const { response } = await testFilter(shadow, { ...test, request: { path: '/a', body: 'text' } });
  t.equal(response?.text, 'main');
  await testFilter(shadow, test);
  await testFilter(shadow, { ...test, request: { body: ['of', 'unknown', 'length'] } });
  await testFilter(shadow, { ...test, runtime: { 'shadow.percent': 0 } });
  t.strictSame(copies, ['POST,/a,test-shadow,text', 'GET,/,test-shadow,']);
});

t.test('sign-requests', async (t) => {
  process.env['TEST_SECRET'] = 'secret';
  const test = { config: { key: 'k', secretFrom: 'TEST_SECRET' }, request: { path: '/a?b', body: 'text' } };
  const headers = (await testFilter(signRequests, test)).forwarded!.headers;
  const signature = createHmac('sha256', 'secret').update(`POST\n/a?b\n${headers['x-time']}\ntext`).digest('base64');
  t.equal(headers['authorization'], `HMAC key="k", signature="${signature}"`);
  await t.rejects(testFilter(signRequests, { config: { key: 'k', secretFrom: 'TEST_NONE' } }), {
    message: /TEST_NONE/,
  });
});

t.test('model-budget', async (t) => {
  const ask = (key: string, response = {}) =>
    testFilter(modelBudget, {
      config: { tokensPerMinute: 10 },
      request: { headers: { authorization: key } },
      response,
    });
  const json = { headers: { 'content-type': 'application/json' }, body: '{"usage":{"total_tokens":4}}' };
  const stream = {
    headers: { 'content-type': 'text/event-stream' },
    body: ['data: {"usage":null}\n\ndata: {"usage":{"total_', 'tokens":6}}\n\ndata: [DONE]\n\n'],
  };
  t.equal((await testFilter(modelBudget, { config: { tokensPerMinute: 10 } })).response?.status, 401);
  t.equal((await ask('a', json)).response?.text, json.body);
  t.equal((await ask('a', stream)).response?.text, stream.body.join(''));
  // A new minute would begin with a new budget.
  const over = await ask('a');
  t.ok(over.response?.status === 429 || new Date().getSeconds() < 5);
  t.equal((await ask('b')).response?.status, 200);
});

t.test('model-fallback', async (t) => {
  const test = {
    config: { cluster: 'other', host: 'other.example', model: 'small', timeoutMs: 1000 },
    clusters: { other: (request: { host: string; text: string }) => ({ body: `${request.host} ${request.text}` }) },
    request: { path: '/v1/chat', body: '{"model":"large","stream":true}' },
  };
  const first = await testFilter(modelFallback, { ...test, response: { body: 'first' } });
  t.equal(first.response?.text, 'first');
  for (const status of [429, 503]) {
    const { response } = await testFilter(modelFallback, { ...test, response: { status, body: 'overloaded' } });
    t.match(response, {
      status: 200,
      text: 'other.example {"model":"small","stream":false}',
      headers: { 'x-provider': 'other' },
    });
  }
});
