// Filters in TypeScript: whatever a hook does wrong, its client gets an answer, the log names the place, and others are served.

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
  ['/value', '', 'it threw a string'],
  ['/type', '', 'onRequest has returned something else'],
  ['/reject', '9:45', 'rejected'],
  ['/field', '', 'a b'],
  ['/status', '', 'a reply cannot have the status 1000'],
  ['/later-type', '', 'onRequest has returned something else'],
  ['/later-status', '', 'a reply cannot have the status 1000'],
  ['/replaced', '', 'setBody() has replaced the body'],
  ['/timer', '', 'in a timer'],
  ['/framing', '', "cannot set 'transfer-encoding'"],
];

t.test('with the default policy the client gets 500', async (t) => {
  const proxy = await startScriptProxy(t, { files: FILES, filter: { timeout: '0.1s' } });
  for (const [path, place, text] of FAULTS) {
    t.match(await proxy.get(path), { status: 500, body: 'Internal Server Error' }, path);
    await logs(proxy, place === '' ? text : `filter.ts:${place}: `);
    await logs(proxy, text);
  }
  await proxy.baton.waitForStat('http.main.script.filter.errors', FAULTS.length);
  t.equal((await proxy.get('/never')).status, 500);
  await proxy.baton.waitForStat('http.main.script.filter.timeouts', 1);
  await logs(proxy, 'it has not ended within 100 ms');
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
