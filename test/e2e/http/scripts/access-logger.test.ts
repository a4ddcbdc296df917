// Access loggers in TypeScript.

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { tempDir } from '../../harness/environment.js';
import {
  type Config,
  ROUTER_FILTER,
  startEchoUpstream,
  startUpstream,
  staticCluster,
  waitFor,
} from '../../harness/index.js';
import { managerOf, routeTo, startProxy } from '../proxy.js';
import { registering, writeScript } from './script-proxy.js';

t.test('onLog gets each finished request, and may send it somewhere', async (t) => {
  const received: string[] = [];
  const collector = await startUpstream(t, (request, answer) => {
    request.setEncoding('utf8').on('data', (text: string) => received.push(text));
    request.on('end', () => answer.end());
  });
  const path = join(tempDir(t), 'log.txt');
  const proxy = await startLogging(t, {
    config: { path },
    collector: collector.port,
    module: `
      import { appendFileSync } from 'node:fs';
      import { defineAccessLogger } from 'baton';
      export default defineAccessLogger<{ readonly path: string }>({
        config(given) {
          if (typeof (given as { path?: unknown }).path !== 'string') throw new Error('path is missing');
          return given as { path: string };
        },
        async onLog(entry, ctx) {
          const { bytesSent, cluster, details, flags, host, method, path, routeName, status, type } = entry;
          const own = [type, method, path, host, status, flags, details, cluster, routeName, bytesSent > 0];
          const more = [entry.requestHeader('x-own'), entry.responseHeader('content-type'), entry.responseTrailer('x-none'), entry.durationMs >= 0];
          appendFileSync(ctx.config.path, [...own, ...more, entry.format('%REQ(:PATH)% %RESPONSE_CODE%'), Number(entry.format('%DOWNSTREAM_WIRE_BYTES_SENT%')) > bytesSent].join() + '\\n');
          ctx.state.count = (ctx.state.count as number ?? 0) + 1;
          ctx.stats.count('entries');
          await ctx.fetch('collector', '/log', { body: String(ctx.state.count) });
          entry.status;
        },
      });`,
  });
  await proxy.get('/a?b=c', { headers: { 'x-own': 'ü' } });
  const line = 'http,GET,/a?b=c,';
  await waitFor(() => read(path).includes(line));
  const [, , , host] = read(path).split(',');
  t.equal(read(path), `${line}${host},200,-,via_upstream,host,,true,ü,application/json,,true,/a?b=c 200,true\n`);
  await waitFor(() => received.length === 1);
  await proxy.get('/');
  await waitFor(() => received.length === 2);
  t.strictSame(received, ['1', '2']);
  await proxy.baton.waitForStats({
    'access_log.script.log.entries': 2,
    'access_log.script.log.errors': 2,
  });
  t.match(proxy.baton.stderr, /failed in onLog: .*log\.ts:\d+:\d+: an entry can be used until onLog\(\) has returned/);
});

t.test('a hook that fails affects no request', async (t) => {
  const proxy = await startLogging(t, {
    module: `
      import { defineAccessLogger } from 'baton';
      export default defineAccessLogger({
        onLog() {
          throw new Error('mine');
        },
      });`,
  });
  t.equal((await proxy.get('/')).status, 200);
  await proxy.baton.waitForStat('access_log.script.log.errors', 1);
  t.match(proxy.baton.stderr, /the script 'log' failed in onLog: .*log\.ts:5:\d+: mine/);
});

function read(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return '';
  }
}

async function startLogging(t: Test, options: { module: string; config?: Config; collector?: number }) {
  const directory = tempDir(t);
  writeScript(directory, 'log.ts', options.module);
  const host = await startEchoUpstream(t);
  const { config, collector = host.port } = options;
  const type = 'type.googleapis.com/baton.access_loggers.script.v1.Script';
  return startProxy(t, {
    listeners: {
      main: managerOf([routeTo({ prefix: '/' }, 'host')], {
        http_filters: [ROUTER_FILTER],
        access_log: [{ name: 'log', typed_config: { '@type': type, module: 'log', config } }],
      }),
    },
    clusters: [staticCluster('host', host.port), staticCluster('collector', collector)],
    extra: registering({ log: { filename: join(directory, 'log.ts') } }),
  });
}
