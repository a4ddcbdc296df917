// Filters in TypeScript: bodies as a whole and in pieces.

import t from 'tap';
import { connectRaw, startEchoUpstream, startUpstream, staticCluster } from '../../harness/index.js';
import { routeTo } from '../proxy.js';
import { echoed, startScriptProxy } from './script-proxy.js';

t.test('a whole body is read and replaced, and content-length follows', async (t) => {
  const { get } = await startScriptProxy(t, {
    files: {
      'filter.ts': `
        import { defineHttpFilter } from 'baton';
        export default defineHttpFilter({
          async onRequest(request) {
            const order = await request.json() as { amount: number };
            request.setBody(JSON.stringify({ ...order, amount: order.amount * 2 }));
          },
          async onResponse(response) {
            const text = await response.text();
            if (text.includes('keep')) return;
            response.setBody(text.replace('amount', 'sum'));
          },
        });`,
    },
  });
  const answer = await get('/', { method: 'POST', body: '{"amount":8}' });
  const echo = echoed(answer);
  t.match(echo, { body: '{"sum":16}', headers: { 'content-length': '13' } });
  t.equal(answer.headers['content-length'], String(answer.body.length));
  t.equal(echoed(await get('/keep', { method: 'POST', body: '{"amount":1}' })).body, '{"amount":2}');
});

t.test('a body is replaced without being read, or added to a request without one', async (t) => {
  const { get } = await startScriptProxy(t, {
    files: {
      'filter.ts': `
        import { defineHttpFilter } from 'baton';
        export default defineHttpFilter({
          onRequest(request) {
            request.setBody(request.hasBody ? 'replaced' : 'added');
          },
          onResponse(response) { if (response.status === 404) response.setBody('nothing here'); },
        });`,
    },
  });
  t.equal(echoed(await get('/', { method: 'POST', body: 'x'.repeat(300_000) })).body, 'replaced');
  t.equal(echoed(await get('/')).body, 'added');
});

t.test('responses to HEAD keep no body', async (t) => {
  const { get } = await startScriptProxy(t, {
    files: {
      'filter.ts': `
        import { defineHttpFilter } from 'baton';
        export default defineHttpFilter({ onResponse: (response) => response.setBody('four') });`,
    },
  });
  t.match(await get('/', { method: 'HEAD' }), { body: '', headers: { 'content-length': '4' } });
  t.match(await get('/'), { body: 'four' });
});

t.test('a body above the buffer limit is answered with 413', async (t) => {
  const { get } = await startScriptProxy(t, {
    files: {
      'filter.ts': `
        import { defineHttpFilter } from 'baton';
        export default defineHttpFilter({ async onRequest(request) { await request.bytes(); } });`,
    },
  });
  t.equal((await get('/', { method: 'POST', body: 'x'.repeat(2_000_000) })).status, 413);
  t.equal((await get('/', { method: 'POST', body: 'small' })).status, 200);
});

t.test('pieces of a response are changed as they pass, and the client has them before the end', async (t) => {
  let finish = () => {};
  const upstream = await startUpstream(t, (_request, answer) => {
    answer.write('one ');
    finish = () => void answer.end('three');
  });
  const { get, port } = await startScriptProxy(t, {
    upstream: upstream.port,
    files: {
      'filter.ts': `
        import { defineHttpFilter } from 'baton';
        export default defineHttpFilter({
          async onResponse(response, ctx) {
            response.headers.set('x-pieces', 'yes');
            let length = 0;
            for await (const piece of response.body) {
              length += piece.bytes.length;
              piece.replace(piece.text().toUpperCase() + '!');
            }
            ctx.metadata.set('own', { length });
          },
        });`,
    },
  });
  const client = await connectRaw(t, port);
  client.write('GET / HTTP/1.1\r\nhost: a\r\n\r\n');
  await client.readUntil('ONE !');
  finish();
  const rest = await client.readUntil('THREE!');
  t.ok(rest);
  const whole = get('/');
  await new Promise<void>((resolve) => {
    const poll = () => (upstream.sockets.size > 0 ? resolve() : void setImmediate(poll));
    poll();
  });
  const timer = setInterval(() => finish(), 20);
  t.equal((await whole).body, 'ONE !THREE!');
  clearInterval(timer);
});

t.test('pieces of a request pass, also after break', async (t) => {
  const { get } = await startScriptProxy(t, {
    files: {
      'filter.ts': `
        import { defineHttpFilter } from 'baton';
        export default defineHttpFilter({
          async onRequest(request) {
            for await (const piece of request.body) {
              piece.replace(Buffer.from(piece.bytes).fill('y'));
              if (request.headers === undefined) throw new Error('never');
              break;
            }
          },
        });`,
    },
  });
  const { body } = echoed(await get('/', { method: 'POST', body: 'x'.repeat(500_000) }));
  t.equal(body.length, 500_000);
  t.match(body, /^y+x+$/);
  t.equal(echoed(await get('/', { method: 'POST', body: 'xxx' })).body, 'yyy');
  t.equal(echoed(await get('/')).body, '');
});

t.test('a response passes while its request is still read in pieces', async (t) => {
  const upstream = await startUpstream(t, (request, answer) => {
    answer.write('begun ');
    request.on('end', () => answer.end('ended')).resume();
  });
  const { port } = await startScriptProxy(t, {
    upstream: upstream.port,
    files: {
      'filter.ts': `
        import { defineHttpFilter } from 'baton';
        export default defineHttpFilter({
          async onRequest(request) { for await (const piece of request.body) piece.text(); },
          async onResponse(response) { await null; response.headers.set('x-seen', 'yes'); },
        });`,
    },
  });
  const client = await connectRaw(t, port);
  client.write('POST / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n');
  client.write('4\r\nhalf\r\n');
  t.match(await client.readUntil('begun '), /x-seen: yes/);
  client.write('4\r\nhalf\r\n0\r\n\r\n');
  t.ok(await client.readUntil('ended'));
});

t.test('a replaced body goes by the route that is selected again', async (t) => {
  const other = await startEchoUpstream(t);
  const { get } = await startScriptProxy(t, {
    clusters: [staticCluster('other', other.port)],
    routes: [
      routeTo({ prefix: '/', headers: [{ name: 'x-to', string_match: { exact: 'other' } }] }, 'other'),
      routeTo({ prefix: '/' }, 'host'),
    ],
    files: {
      'filter.ts': `
        import { defineHttpFilter } from 'baton';
        export default defineHttpFilter({
          async onRequest(request, ctx) {
            if (request.path === '/read') await request.text();
            request.headers.set('x-to', 'other');
            request.setBody('replaced');
            ctx.rematchRoute();
          },
        });`,
    },
  });
  for (const [path, body] of [
    ['/read', 'x'.repeat(100_000)],
    ['/unread', 'x'.repeat(100_000)],
    ['/none', undefined],
  ] as const) {
    const answer = echoed(await get(path, { method: 'POST', ...(body !== undefined && { body }) }));
    t.match(answer, { url: path, body: 'replaced', headers: { 'content-length': '8' } }, path);
  }
  t.ok(other.accepted() > 0);
});

t.test('a held response of any size is not buffered', async (t) => {
  const upstream = await startUpstream(t, (_request, answer) => void answer.end('z'.repeat(5_000_000)));
  const { get } = await startScriptProxy(t, {
    upstream: upstream.port,
    files: {
      'filter.ts': `
        import { setTimeout as sleep } from 'node:timers/promises';
        import { defineHttpFilter } from 'baton';
        export default defineHttpFilter({ async onResponse() { await sleep(50); } });`,
    },
  });
  t.match(await get('/'), { status: 200, body: /^z{5000000}$/ });
});
