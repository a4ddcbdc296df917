// Filters in TypeScript: whatever a hook does wrong, its client gets an answer, the log names the place, and others are served.

import { randomUUID } from 'node:crypto';
import t, { type Test } from 'tap';
import { connectRaw, waitFor } from '../../harness/index.js';
import { echoed, type ScriptProxy, startScriptProxy } from './script-proxy.js';

const FILES = {
  'filter.ts': `import { defineHttpFilter } from 'baton';
let last: { headers: { get(name: string): unknown } };
export default defineHttpFilter({
  onRequest(request, ctx): any {
    switch (request.pathname) {
      case '/throw': throw new Error('thrown');
      case '/value': throw 'a string';
      case '/type': return 'a string';
      case '/reject': return Promise.reject(new TypeError('rejected'));
      case '/later-type': return Promise.resolve('a string');
      case '/later-status': return Promise.resolve(ctx.reply(1000));
      case '/replaced': request.setBody('new'); return void request.body;
      case '/never': return new Promise(() => {});
      case '/field': return ctx.reply(200, '', { 'a b': 'c' });
      case '/status': return ctx.reply(1000);
      case '/keep': last = request; return;
      case '/late': return void last.headers.get('x');
      case '/timer': return new Promise((resolve) => { ctx.setTimeout(() => { throw new Error('in a timer'); }, 1); });
      case '/global': setTimeout(() => { throw new Error('in a global timer'); }, 1); return;
      case '/framing': return request.headers.set('transfer-encoding', 'chunked');
    }
  },
  onResponse(response): any {
    if (response.headers.get('x-own') === null) return;
    if (response.status === 200 && response.headers.get('content-type') === 'bad') throw new Error('never');
  },
});
`,
};

const FAULTS: readonly (readonly [path: string, place: string, text: string])[] = [
  ['/throw', '6:28', 'thrown'],
  ['/value', '4:3', 'it threw a string'],
  ['/type', '4:3', 'onRequest has returned something else'],
  ['/reject', '9:45', 'rejected'],
  ['/field', '14:33', 'a b'],
  ['/status', '15:34', 'a reply cannot have the status 1000'],
  ['/later-type', '4:3', 'onRequest has returned something else'],
  ['/later-status', '11:56', 'a reply cannot have the status 1000'],
  ['/replaced', '12:69', 'setBody() has replaced the body'],
  ['/timer', '18:85', 'in a timer'],
  ['/framing', '20:47', "cannot set 'transfer-encoding'"],
];

t.test('with the default policy the client gets 500', async (t) => {
  const proxy = await startScriptProxy(t, { files: FILES, filter: { timeout: '0.1s' } });
  for (const [path, place, text] of FAULTS) {
    const id = randomUUID();
    t.match(
      await proxy.get(path, { headers: { 'x-request-id': id } }),
      { status: 500, body: 'Internal Server Error' },
      path,
    );
    const line = await waitFor(() => proxy.baton.stderr.split('\n').find((each) => each.includes(id)), { what: path });
    t.match(line, `filter.ts:${place}: `, path);
    t.match(line, text, path);
    t.ok(line.endsWith(`; the client gets 500 (x-request-id ${id})`), line);
  }
  await proxy.baton.waitForStat('http.main.script.filter.errors', FAULTS.length);
  t.equal((await proxy.get('/never')).status, 500);
  await proxy.baton.waitForStat('http.main.script.filter.timeouts', 1);
  await logs(proxy, /filter\.ts:4:3: it has not ended within 100 ms; the client gets 500 \(x-request-id /);
  await serves(t, proxy);
});

t.test('the log line of a failure has the request id, wherever the module fails', async (t) => {
  const proxy = await startScriptProxy(t, {
    files: {
      'filter.ts': `
        import { defineHttpFilter } from 'baton';
        export default defineHttpFilter({
          async onRequest(request, ctx) {
            if (request.path === '/read') { for await (const _ of request.body); throw new Error('after reading'); }
            if (request.path === '/timer') ctx.setTimeout(() => { throw 'in a timer'; }, 1);
            if (request.path === '/timer') await new Promise(() => {});
            ctx.state.path = request.path;
          },
          async onResponse(response, ctx) {
            if (ctx.state.path === '/response') { await response.text(); throw new Error('in the response'); }
          },
          onStreamEnd(end, ctx) { if (ctx.state.path === '/end') throw new Error('at the end'); },
        });`,
    },
  });
  for (const [path, text] of [
    ['/read', /filter\.ts:5:\d+: after reading/],
    ['/timer', /failed in a timer: \S+filter\.ts:6:\d+: it threw in a timer/],
    ['/response', /failed in onResponse: \S+filter\.ts:11:\d+: in the response/],
    ['/end', /failed in onStreamEnd: \S+filter\.ts:13:\d+: at the end/],
  ] as const) {
    const id = randomUUID();
    const options = { method: 'POST', headers: { 'x-request-id': id }, body: 'x'.repeat(1000) };
    await proxy.get(path, options).catch(() => {});
    const line = () => proxy.baton.stderr.split('\n').find((each) => each.includes(`(x-request-id ${id})`));
    t.match(await waitFor(line, { what: path }), text);
  }
  await serves(t, proxy);
});

t.test(
  'a request that has gone on is not usable, and an exception in a timer of Node affects no request',
  async (t) => {
    const proxy = await startScriptProxy(t, { files: FILES });
    t.equal((await proxy.get('/keep')).status, 200);
    t.equal((await proxy.get('/late')).status, 500);
    await logs(proxy, 'the request has gone on');
    t.equal((await proxy.get('/global')).status, 200);
    await logs(proxy, "the script 'filter' failed outside of a hook");
    await logs(proxy, /filter\.ts:19:\d+: in a global timer/);
    await proxy.baton.waitForStat('script.filter.uncaught_errors', 1);
    await serves(t, proxy);
  },
);

t.test('with failure_policy OPEN the request continues', async (t) => {
  const proxy = await startScriptProxy(t, { files: FILES, filter: { failure_policy: 'OPEN', timeout: '0.1s' } });
  const paths = ['/throw', '/reject', '/never', '/type', '/field', '/later-type', '/later-status', '/replaced'];
  for (const path of paths) t.equal(echoed(await proxy.get(path)).url, path, path);
  await serves(t, proxy);
});

t.test('a fault after the response has begun cuts it off', async (t) => {
  const proxy = await startScriptProxy(t, {
    files: {
      'filter.ts': `
        import { defineHttpFilter } from 'baton';
        export default defineHttpFilter({
          async onResponse(response) { for await (const piece of response.body) if (piece.text().includes('/cut')) throw new Error('cut'); },
        });`,
    },
  });
  await t.rejects(proxy.get('/cut'));
  t.equal((await proxy.get('/')).status, 200);
  await serves(t, proxy);
});

t.test('a hook whose client leaves does not take the part of a body for the whole', async (t) => {
  const proxy = await startScriptProxy(t, {
    files: {
      'filter.ts': `
        import { defineHttpFilter } from 'baton';
        export default defineHttpFilter({
          async onRequest(request, ctx) {
            const { pathname } = request;
            const left = new Promise((resolve) => ctx.signal.addEventListener('abort', resolve));
            ctx.stats.count('begun');
            try {
              if (pathname === '/whole') await request.text();
              else for await (const _ of request.body) if (pathname === '/busy') await left;
              ctx.stats.count('whole');
            } catch { ctx.stats.count('cut'); }
          },
        });`,
    },
  });
  for (const [index, path] of ['/busy', '/idle', '/whole'].entries()) {
    const client = await connectRaw(t, proxy.port);
    client.write(`POST ${path} HTTP/1.1\r\nhost: a\r\ncontent-length: 8\r\n\r\nhalf`);
    await proxy.baton.waitForStat('http.main.script.filter.begun', index + 1);
    client.destroy();
    await proxy.baton.waitForStat('http.main.script.filter.cut', index + 1);
  }
  await serves(t, proxy);
});

t.test('a body that is read after its hook has returned is sent on, and the reading fails', async (t) => {
  const proxy = await startScriptProxy(t, {
    files: {
      'filter.ts': `
        import { defineHttpFilter } from 'baton';
        async function read(request: { body: AsyncIterable<unknown> }) {
          for await (const _ of request.body);
        }
        export default defineHttpFilter({
          onRequest(request) {
            void read(request);
            if (request.path === '/throw') throw new Error('thrown');
          },
        });`,
    },
    filter: { failure_policy: 'OPEN' },
  });
  for (const [index, path] of ['/', '/throw'].entries()) {
    const body = 'x'.repeat(200_000);
    t.equal(echoed(await proxy.get(path, { method: 'POST', body })).body, body, path);
    await proxy.baton.waitForStat('script.filter.uncaught_errors', index + 1);
  }
  await logs(proxy, /filter\.ts:4:\d+: the request has gone on/);
  await serves(t, proxy);
});

async function serves(t: Test, { baton, get }: ScriptProxy): Promise<void> {
  t.equal((await get('/fine')).status, 200);
  t.notMatch(baton.stderr, /worker \d+ died/);
}

function logs({ baton }: ScriptProxy, text: string | RegExp): Promise<unknown> {
  return waitFor(() => baton.stderr.search(text instanceof RegExp ? text : text.replace(/\W/g, '\\$&')) >= 0, {
    what: `${text} in the log`,
  });
}
