// Filters in TypeScript: a changed file serves new requests, and a broken one does not.

import { renameSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { startUpstream, waitFor } from '../../harness/index.js';
import { echoed, type ScriptProxy, startScriptProxy } from './script-proxy.js';

const answering = (text: string) => `
import { defineHttpFilter } from 'baton';
import { name } from './lib/name.ts';
export default defineHttpFilter({
  onRequest: (request) => request.headers.set('x-version', '${text}' + name),
});`;

t.test('the entry and its imports are loaded again, and broken versions are not used', async (t) => {
  const proxy = await startScriptProxy(t, {
    files: { 'filter.ts': answering('a'), 'lib/name.ts': "export const name: string = '1';" },
    watch: true,
    args: ['-l', 'info', '--concurrency', '2'],
  });
  await serves(proxy, 'a1');
  proxy.write('filter.ts', answering('b'));
  await serves(proxy, 'b1');
  proxy.write('lib/next.ts', "export const name = '2';");
  renameSync(join(proxy.directory, 'lib/next.ts'), join(proxy.directory, 'lib/name.ts'));
  await serves(proxy, 'b2');
  await proxy.baton.waitForStats({ 'script.filter.generation': 3, 'script.filter.reload_success': 2 });
  proxy.write('lib/name.ts', "export const name: = '3';");
  await proxy.baton.waitForStats({ 'script.filter.generation': 3, 'script.filter.reload_failure': 1 });
  t.match(proxy.baton.stderr, /lib\/name\.ts:1:20: .*version 3 of 'filter' serves/);
  await serves(proxy, 'b2');
  proxy.write('lib/name.ts', "export const name = '4';");
  await serves(proxy, 'b4');
  proxy.write('filter.ts', answering('c').replace('onRequest', 'onRequst'));
  await proxy.baton.waitForStat('script.filter.reload_failure', 2);
  t.match(proxy.baton.stderr, "does not know 'onRequst'; did you mean 'onRequest'?");
  await serves(proxy, 'b4');
});

t.test('a request in flight keeps its version', async (t) => {
  let answerAll = () => {};
  const waiting: (() => void)[] = [];
  const upstream = await startUpstream(t, (request, answer) => {
    const end = () => void answer.end(request.headers['x-version']);
    if (request.url === '/wait') waiting.push(end);
    else end();
    answerAll = () => {
      for (const each of waiting) each();
    };
  });
  const source = (text: string) => `
import { defineHttpFilter } from 'baton';
export default defineHttpFilter({
  onRequest: (request) => request.headers.set('x-version', '${text}'),
  onResponse: (response) => response.headers.set('x-version', '${text}'),
});`;
  const proxy = await startScriptProxy(t, {
    files: { 'filter.ts': source('a') },
    watch: true,
    upstream: upstream.port,
  });
  const old = proxy.get('/wait');
  await waitFor(() => waiting.length === 1);
  proxy.write('filter.ts', source('b'));
  await waitFor(async () => (await proxy.get('/')).body === 'b');
  answerAll();
  t.match(await old, { body: 'a', headers: { 'x-version': 'a' } });
});

async function serves({ get }: ScriptProxy, version: string): Promise<void> {
  await waitFor(async () => echoed(await get('/')).headers['x-version'] === version, { what: `version ${version}` });
}
