// Filters in TypeScript: calls, timers, metadata, runtime values, the end of a request.

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { tempDir } from '../../harness/environment.js';
import { fileAccessLog, startUpstream, staticCluster, waitFor } from '../../harness/index.js';
import { echoed, startScriptProxy } from './script-proxy.js';

t.test('ctx.fetch calls a cluster from request and response', async (t) => {
  const keys = await startUpstream(t, (request, answer) => {
    const parts: Buffer[] = [];
    request.on('data', (part: Buffer) => parts.push(part));
    request.on('end', () => {
      if (request.url === '/slow') return;
      answer.setHeader('x-kind', 'key');
      answer.end(
        JSON.stringify({
          method: request.method,
          url: request.url,
          host: request.headers.host,
          body: String(Buffer.concat(parts)),
        }),
      );
    });
  });
  const { get } = await startScriptProxy(t, {
    clusters: [staticCluster('keys', keys.port)],
    files: {
      'filter.ts': `
        import { defineHttpFilter } from 'baton';
        export default defineHttpFilter({
          async onRequest(request, ctx) {
            if (request.path === '/none') await ctx.fetch('absent', '/');
            if (request.path === '/slow') {
              const why = await ctx.fetch('keys', '/slow', { timeoutMs: 20 }).catch((error: Error) => error.message);
              return ctx.reply(503, why as string);
            }
            const answer = await ctx.fetch('keys', '/key?a=b', { body: 'hello', headers: { 'x-own': 'ü' } });
            request.headers.set('x-key', [answer.ok, answer.status, answer.headers.get('x-kind'), answer.text()].join());
          },
          async onResponse(response, ctx) {
            response.headers.set('x-get', (await ctx.fetch('keys', '/get')).json().method);
          },
        });`,
    },
  });
  const answer = await get('/');
  t.equal(
    echoed(answer).headers['x-key'],
    'true,200,key,{"method":"POST","url":"/key?a=b","host":"keys","body":"hello"}',
  );
  t.equal(answer.headers['x-get'], 'GET');
  t.match(await get('/slow'), { status: 503, body: "fetch from 'keys': it does not answer in time" });
  t.equal((await get('/none')).status, 500);
});

t.test('metadata reaches access logs, and onStreamEnd sees the outcome', async (t) => {
  const path = join(tempDir(t), 'access.log');
  const { baton, get } = await startScriptProxy(t, {
    manager: { access_log: [fileAccessLog(path, '%DYNAMIC_METADATA(own:user)% %DYNAMIC_METADATA(own:end)%\n')] },
    extra: {
      layered_runtime: { layers: [{ name: 'static', static_layer: { own: { limit: 7, text: 'abc', flag: true } } }] },
    },
    args: ['--file-flush-interval-msec', '50', '-l', 'info'],
    files: {
      'filter.ts': `
        import { defineHttpFilter } from 'baton';
        export default defineHttpFilter({
          onRequest(request, ctx) {
            ctx.metadata.set('own', { user: 'ann', ...ctx.metadata.get('own') });
            const { runtime } = ctx;
            ctx.log.info(['values', runtime.number('own.limit', 1), runtime.string('own.text', ''), runtime.boolean('own.flag', false), runtime.number('own.none', 3)].join());
            ctx.log.warn('from ' + ctx.connection.remoteAddress.replace(/:.*/, '') + String(ctx.connection.tls));
            ctx.setTimeout(() => { throw new Error('too late'); }, 600_000);
            ctx.signal.addEventListener('abort', () => ctx.log.info('aborted'));
          },
          onStreamEnd(end, ctx) {
            ctx.metadata.set('own', { end: [end.status, end.flags, end.details].join() });
          },
        });`,
    },
  });
  t.equal((await get('/')).status, 200);
  await waitFor(() => readFileSync(path, 'utf8') === 'ann 200,-,via_upstream\n');
  for (const line of ['[filter] values,7,abc,true,3', '[filter] from 127.0.0.1undefined', '[filter] aborted'])
    await waitFor(() => baton.stderr.includes(line), { what: line });
});
