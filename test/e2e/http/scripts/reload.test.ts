// Filters in TypeScript: a changed file serves new requests, and a broken one does not.

import { renameSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { tempDir } from '../../harness/environment.js';
import {
  bootstrap,
  type Config,
  connectRaw,
  httpListener,
  httpRequest,
  startBaton,
  startEchoUpstream,
  startUpstream,
  staticCluster,
  waitFor,
} from '../../harness/index.js';
import { managerOf, routeTo } from '../proxy.js';
import { echoed, registering, type ScriptProxy, startScriptProxy, writeScript } from './script-proxy.js';

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
  await logs(proxy, /lib\/name\.ts:1:20: .*version 3 of 'filter' serves/);
  await serves(proxy, 'b2');
  proxy.write('lib/name.ts', "export const name = '4';");
  await serves(proxy, 'b4');
  proxy.write('filter.ts', answering('c').replace('onRequest', 'onRequst'));
  await proxy.baton.waitForStat('script.filter.reload_failure', 2);
  await logs(proxy, /does not know 'onRequst'; did you mean 'onRequest'\?/);
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

/** Waits for a line, which may be read after the stats that belong to it. */
async function logs({ baton }: ScriptProxy, line: RegExp): Promise<void> {
  await waitFor(() => line.test(baton.stderr), { what: `${line} in ${baton.stderr}` });
}

async function serves({ get }: ScriptProxy, version: string): Promise<void> {
  await waitFor(async () => echoed(await get('/')).headers['x-version'] === version, { what: `version ${version}` });
}

t.test('new connections and entries have the new version of network filters and access loggers', async (t) => {
  const directory = tempDir(t);
  const filter = (version: string) => `
    import { defineNetworkFilter } from 'baton';
    export default defineNetworkFilter({
      onConnection: (ctx) => ctx.stats.count('begun_${version}'),
      onClose: (ctx) => ctx.stats.count('ended_${version}'),
    });`;
  const logger = (version: string) => `
    import { defineAccessLogger } from 'baton';
    export default defineAccessLogger({
      onLog(_entry, ctx) {
        ctx.state.total = (ctx.state.total as number ?? 0) + 1;
        ctx.stats.gauge('total', ctx.state.total as number);
        ctx.stats.count('logged_${version}');
      },
    });`;
  const write = (version: string) => {
    writeScript(directory, 'filter.ts', filter(version));
    writeScript(directory, 'logger.ts', logger(version));
  };
  write('a');
  const host = await startEchoUpstream(t);
  const typed = (kind: string, module: string) => ({
    name: module,
    typed_config: { '@type': `type.googleapis.com/baton.${kind}.script.v1.Script`, module },
  });
  const manager = managerOf([routeTo({ prefix: '/' }, 'host')], { access_log: [typed('access_loggers', 'logger')] });
  const listener = httpListener('main', 0, manager);
  const [chain] = listener['filter_chains'] as { filters: Config[] }[];
  const filters = [typed('filters.network', 'filter'), ...chain!.filters];
  const modules = ['filter', 'logger'].map((name) => [name, { filename: join(directory, `${name}.ts`), watch: true }]);
  const baton = await startBaton(t, {
    config: bootstrap({
      listeners: [{ ...listener, filter_chains: [{ filters }] }],
      clusters: [staticCluster('host', host.port)],
      extra: registering(Object.fromEntries(modules)),
    }),
    args: ['-l', 'warning', '--concurrency', '1'],
  });
  const port = await baton.listenerPort('main');
  const old = await connectRaw(t, port);
  await httpRequest(port, '/');
  const stat = async (name: string) => (await baton.stat(name)) ?? 0;
  const connections = (name: string) => stat(`network_filter.script.filter.${name}`);
  const entries = (name: string) => stat(`access_log.script.logger.${name}`);
  await waitFor(async () => (await connections('begun_a')) === 2 && (await entries('logged_a')) === 1);
  write('b');
  await waitFor(async () => {
    await httpRequest(port, '/');
    return (await connections('begun_b')) > 0 && (await entries('logged_b')) > 0;
  });
  const isStateKept = async () =>
    (await entries('total')) === (await entries('logged_a')) + (await entries('logged_b'));
  await waitFor(isStateKept, { what: 'the state of the logger' });
  t.equal(await connections('ended_a'), (await connections('begun_a')) - 1, 'a connection keeps its version');
  old.reset();
  await waitFor(async () => (await connections('ended_a')) === (await connections('begun_a')));
});
