// Filters in TypeScript: heads of requests and responses, replies, routing.

import t from 'tap';
import { startEchoUpstream, staticCluster } from '../../harness/index.js';
import { routeTo } from '../proxy.js';
import { echoed, startScriptProxy } from './script-proxy.js';

t.test('synchronous hooks change requests and responses', async (t) => {
  const { get } = await startScriptProxy(t, {
    files: {
      'filter.ts': `
        import { defineHttpFilter, type HttpRequest } from 'baton';
        import { mark } from './mark.js';
        export default defineHttpFilter<{ mark: string }>({
          onRequest(request: HttpRequest, ctx): void {
            request.headers.set('x-mark', mark(ctx.config.mark, request.headers.get('X-Given')));
            request.headers.append('x-mark', 'ü');
            request.headers.delete('x-secret');
            request.path = request.pathname + '/' + request.query.get('q') + request.cookie('b');
            request.host = 'elsewhere';
            request.method = 'PUT';
          },
          onResponse(response) {
            response.status = 202;
            response.headers.set('x-names', [...response.headers].map(([name]) => name).join());
          },
        });`,
      'mark.ts': `export const mark = (own: string, given: string | undefined): string => \`\${own}-\${given as string}\`;`,
    },
    filter: { config: { mark: 'm' } },
  });
  const answer = await get('/a?q=1', { headers: { 'x-given': 'g', 'x-secret': 's', cookie: 'a=1; b="2"' } });
  t.equal(answer.status, 202);
  t.match(answer.headers['x-names'], /content-type/);
  const { headers, method, url } = echoed(answer);
  t.match({ method, url, host: headers.host }, { method: 'PUT', url: '/a/12', host: 'elsewhere' });
  // Read as Latin-1 by the upstream, and by the client once more.
  t.equal(headers['x-mark'], `m-g, ${Buffer.from(Buffer.from('ü').toString('latin1')).toString('latin1')}`);
  t.notOk(headers['x-secret']);
});

t.test('asynchronous hooks hold request and response', async (t) => {
  const { baton, get } = await startScriptProxy(t, {
    files: {
      'filter.ts': `
        import { setTimeout as sleep } from 'node:timers/promises';
        import { defineHttpFilter } from 'baton';
        export default defineHttpFilter({
          async onRequest(request, ctx) {
            await sleep(5);
            request.headers.set('x-late', 'yes');
            ctx.state['at'] = 'request';
          },
          async onResponse(response, ctx) {
            await null;
            response.headers.set('x-state', String(ctx.state['at']));
            ctx.stats.count('seen');
            ctx.stats.record('took', 3);
          },
        });`,
    },
  });
  const answer = await get('/', { method: 'POST', body: 'x'.repeat(100_000) });
  t.equal(echoed(answer).headers['x-late'], 'yes');
  t.equal(echoed(answer).body.length, 100_000);
  t.equal(answer.headers['x-state'], 'request');
  await baton.waitForStat('http.main.script.filter.seen', 1);
});

t.test('a hook replies instead of the host', async (t) => {
  const upstream = await startEchoUpstream(t);
  const { baton, get } = await startScriptProxy(t, {
    upstream: upstream.port,
    files: {
      'filter.ts': `
        import { defineHttpFilter } from 'baton';
        export default defineHttpFilter({
          onRequest(request, ctx) {
            if (request.path === '/sync') return ctx.reply(403, 'no', { 'x-why': 'sync' });
            if (request.path === '/async') return Promise.resolve(ctx.reply(401, new Uint8Array([110, 111])));
          },
          onResponse(response, ctx) {
            response.headers.set('x-seen', 'yes');
            if (response.status === 200) return ctx.reply(502, 'instead');
          },
        });`,
    },
  });
  t.match(await get('/sync'), { status: 403, body: 'no', headers: { 'x-why': 'sync', 'x-seen': undefined } });
  t.match(await get('/async'), { status: 401, body: 'no' });
  t.equal(upstream.accepted(), 0);
  t.match(await get('/'), { status: 502, body: 'instead' });
  await baton.waitForStat('http.main.script.filter.replies', 3);
});

t.test('a hook chooses the cluster, or has the route selected again', async (t) => {
  const other = await startEchoUpstream(t);
  const { get } = await startScriptProxy(t, {
    clusters: [staticCluster('other', other.port)],
    routes: [
      { match: { prefix: '/direct' }, direct_response: { status: 200, body: { inline_string: 'direct' } } },
      { ...routeTo({ prefix: '/' }, 'host'), name: 'all', metadata: { filter_metadata: { own: { tier: 'gold' } } } },
    ],
    files: {
      'filter.ts': `
        import { defineHttpFilter } from 'baton';
        export default defineHttpFilter({
          onRequest(request, ctx) {
            request.headers.set('x-route', [ctx.route?.name, ctx.route?.cluster, ctx.route?.metadata['own']?.['tier']].join());
            if (request.path === '/other') ctx.setCluster('other');
            if (request.path === '/missing') ctx.setCluster('missing');
            if (request.path === '/again') { request.path = '/direct'; ctx.rematchRoute(); }
          },
        });`,
    },
  });
  t.equal(echoed(await get('/')).headers['x-route'], 'all,host,gold');
  t.equal(other.accepted(), 0);
  t.equal(echoed(await get('/other')).url, '/other');
  t.equal(other.accepted(), 1);
  t.equal((await get('/again')).body, 'direct');
  t.equal((await get('/missing')).status, 500);
});

t.test('the config of a route replaces that of the filter', async (t) => {
  const own = { '@type': 'type.googleapis.com/baton.filters.http.script.v1.ScriptPerRoute', config: { who: 'route' } };
  const { get } = await startScriptProxy(t, {
    filter: { config: { who: 'filter' } },
    routes: [
      { ...routeTo({ prefix: '/own' }, 'host'), typed_per_filter_config: { filter: own } },
      routeTo({ prefix: '/' }, 'host'),
    ],
    files: {
      'filter.ts': `
        import { defineHttpFilter } from 'baton';
        export default defineHttpFilter<{ who: string }>({
          config: (given) => ({ who: (given as { who: string }).who.toUpperCase() }),
          onRequest: (request, ctx) => request.headers.set('x-who', ctx.config.who),
        });`,
    },
  });
  t.equal(echoed(await get('/own')).headers['x-who'], 'ROUTE');
  t.equal(echoed(await get('/')).headers['x-who'], 'FILTER');
});
