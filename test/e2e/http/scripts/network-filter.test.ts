// Network filters in TypeScript.

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import {
  bootstrap,
  type Config,
  connectRaw,
  fileAccessLog,
  startBaton,
  startTcpUpstream,
  staticCluster,
  tcpListener,
  tempDir,
  waitFor,
} from '../../harness/index.js';
import { registering, writeScript } from './script-proxy.js';

const TYPE = 'type.googleapis.com/baton.filters.network.script.v1.Script';

/** Connections choose by their first line: a cluster, or what the filter does. */
const MODULE = `
  import { defineNetworkFilter } from 'baton';
  export default defineNetworkFilter<{ readonly clusters: Readonly<Record<string, string>> }>({
    async onConnection(ctx) {
      ctx.state.greeting = (await ctx.fetch('service', '/')).text();
      ctx.stats.count('connections');
      return 'more' as const;
    },
    onData(data, ctx) {
      const text = Buffer.from(data).toString();
      const end = text.indexOf('\\n');
      if (end < 0) return 'more';
      const word = text.slice(0, end);
      if (word === 'close') return void ctx.close('not_wanted');
      if (word === 'throw') throw new Error('mine');
      if (word === 'wrong') return 5 as never;
      if (word === 'reject') return Promise.reject(new Error('later'));
      if (word === 'never') return new Promise<void>(() => {});
      if (word === 'timer') return void ctx.setTimeout(() => { throw new Error('in a timer'); }, 1) ?? new Promise<void>(() => {});
      ctx.setCluster(ctx.config.clusters[word] ?? word);
      return Promise.resolve('done' as const);
    },
    onClose(ctx) {
      ctx.stats.count('closed');
      ctx.log.warn('closed ' + ctx.state.greeting);
    },
  });`;

t.test('hooks see a connection and its bytes, and hold, route or close it', async (t) => {
  const directory = tempDir(t);
  writeScript(directory, 'first-line.ts', MODULE);
  const echo = async (word: string) =>
    (await startTcpUpstream(t, (socket) => void socket.on('data', (data) => socket.write(`${word}:${data}`)))).port;
  const service = await startTcpUpstream(t, (socket) => {
    socket.on('data', () => socket.end('HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nhi'));
  });
  const log = join(directory, 'access.log');
  const guarded = (name: string, more: Config) => {
    const access_log = [fileAccessLog(log, '%CONNECTION_TERMINATION_DETAILS%\n')];
    const listener = tcpListener(name, 0, { cluster: 'a' });
    const [chain] = listener['filter_chains'] as { filters: Config[] }[];
    const config = { module: 'first', config: { clusters: { second: 'b' } }, timeout: '2s', ...more };
    const filters = [{ name: 'first', typed_config: { '@type': TYPE, ...config } }, ...chain!.filters];
    return { ...listener, access_log, filter_chains: [{ filters }] };
  };
  const baton = await startBaton(t, {
    config: bootstrap({
      listeners: [guarded('closed', {}), guarded('open', { failure_policy: 'OPEN' })],
      clusters: [
        staticCluster('a', await echo('a')),
        staticCluster('b', await echo('b')),
        staticCluster('service', service.port),
      ],
      extra: registering({ first: { filename: join(directory, 'first-line.ts') } }),
    }),
    args: ['--file-flush-interval-msec', '20', '-l', 'warning'],
  });
  const open = async (listener: string) => connectRaw(t, await baton.listenerPort(listener));

  for (const [word, cluster] of [
    ['second', 'b'],
    ['a', 'a'],
  ] as const) {
    const client = await open('closed');
    client.write(word.slice(0, 1));
    client.write(`${word.slice(1)}\nrest`);
    await client.readUntil(`${word}\nrest`);
    client.write('more');
    t.equal(await client.readUntil('more'), `${cluster}:more`);
    client.reset();
  }
  for (const [word, line] of [
    ['close', undefined],
    ['throw', /failed in onData: .*first-line\.ts:\d+:\d+: mine; the connection is closed/],
    ['wrong', /onData has returned something else than nothing, 'more' and 'done'/],
    ['reject', /first-line\.ts:\d+:\d+: later/],
    ['never', /it has held the connection for 2000 ms/],
    ['timer', /failed in a timer: .*in a timer/],
    ['nowhere', /setCluster\(\): there is no cluster 'nowhere'/],
    ['unfinished', undefined],
  ] as const) {
    const client = await open('closed');
    client.write(word === 'unfinished' ? 'no line' : `${word}\n`);
    t.match(await client.readToEnd(), { text: '' }, word);
    if (line !== undefined) await waitFor(() => line.test(baton.stderr), { what: `${line} in ${baton.stderr}` });
  }
  const passed = await open('open');
  passed.write('throw\nrest');
  t.match(await passed.readUntil('rest'), /a:throw\n/);
  passed.reset();
  await baton.waitForStats({
    'network_filter.script.first.replies': 1,
    'network_filter.script.first.timeouts': 2,
    'network_filter.script.first.errors': 6,
    'network_filter.script.first.connections': 11,
    'network_filter.script.first.closed': 11,
  });
  await waitFor(() => baton.stderr.includes('[first] closed hi'));
  await waitFor(() => /not_wanted\n(.|\n)*script_error\n(.|\n)*script_timeout/.test(readFileSync(log, 'utf8')));
});

t.test('a connection can be held for its first bytes, which choose the cluster', async (t) => {
  const directory = tempDir(t);
  const byFirstLine = (onConnection: string) => `
    import { defineNetworkFilter } from 'baton';
    export default defineNetworkFilter({
      ${onConnection}
      onData(data, ctx) {
        const text = Buffer.from(data).toString();
        if (!text.includes('\\n')) return 'more';
        ctx.setCluster(text.slice(0, text.indexOf('\\n')));
        return 'done';
      },
    });`;
  writeScript(directory, 'holds.ts', byFirstLine("onConnection: () => 'more',"));
  writeScript(directory, 'passes.ts', byFirstLine(''));
  writeScript(
    directory,
    'late.ts',
    `import { defineNetworkFilter } from 'baton';
    export default defineNetworkFilter({
      onData(_data, ctx) {
        ctx.setTimeout(() => { throw new Error('in a timer'); }, 1);
        return 'more';
      },
    });`,
  );
  const names = ['holds', 'passes', 'late'];
  const echo = async (word: string) =>
    (await startTcpUpstream(t, (socket) => void socket.on('data', (data) => socket.write(`${word}:${data}`)))).port;
  const listeners = names.map((name) => {
    const listener = tcpListener(name, 0, { cluster: 'a' });
    const [chain] = listener['filter_chains'] as { filters: Config[] }[];
    const config = { module: name, timeout: '0.2s', failure_policy: name === 'late' ? 'OPEN' : 'CLOSED' };
    const filters = [{ name, typed_config: { '@type': TYPE, ...config } }, ...chain!.filters];
    return { ...listener, filter_chains: [{ filters }] };
  });
  const baton = await startBaton(t, {
    config: bootstrap({
      listeners,
      clusters: [staticCluster('a', await echo('a')), staticCluster('b', await echo('b'))],
      extra: registering(Object.fromEntries(names.map((name) => [name, { filename: join(directory, `${name}.ts`) }]))),
    }),
    args: ['-l', 'warning'],
  });
  const send = async (listener: string, text: string) => {
    const client = await connectRaw(t, await baton.listenerPort(listener));
    if (text !== '') client.write(text);
    return client;
  };
  const chosen = await send('holds', 'b\nrest');
  t.equal(await chosen.readUntil('rest'), 'b:b\nrest');
  chosen.reset();
  t.match(await (await send('holds', '')).readToEnd(), { text: '' }, 'a silent client is not held forever');
  t.match(await (await send('passes', 'b\n')).readToEnd(), { text: '' });
  await waitFor(() => baton.stderr.includes('setCluster(): the connection was passed on'));
  const open = await send('late', 'x');
  t.equal(await open.readUntil('x'), 'a:x', 'a failed timer releases the connection');
  open.reset();
  await baton.waitForStats({
    'network_filter.script.holds.timeouts': 1,
    'network_filter.script.passes.errors': 1,
    'network_filter.script.late.errors': 1,
  });
});
