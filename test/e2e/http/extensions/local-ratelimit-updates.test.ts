// The tokens of a local rate limit across worker deaths and configuration changes.

import { writeFileSync } from 'node:fs';
import t from 'tap';
import { ResourceFile } from '../../dynamic/resource-file.js';
import {
  type BatonProcess,
  bootstrap,
  type Config,
  httpListener,
  httpRequest,
  startBaton,
  tempDir,
  waitFor,
} from '../../harness/index.js';
import { startBreakableBaton } from '../../process/faults/fault-injection.js';
import { KeepAliveClient, tally } from '../keep-alive.js';
import { answering } from '../proxy.js';
import { limiting, limitOf } from './rate-limits.js';

const ARGS = ['-l', 'warning', '--concurrency', '2'];

/** Returns how many of 20 requests pass. */
async function passing(t: Parameters<typeof startBaton>[0], port: number, path = '/'): Promise<number> {
  const answers = await new KeepAliveClient(t, port, 4).repeat(20, path);
  const counts = tally(answers.map(({ status }) => String(status)));
  return counts['200'] ?? 0;
}

/** Changes the bootstrap and reloads it. */
async function reload(baton: BatonProcess, config: Config): Promise<void> {
  writeFileSync(baton.configPath, JSON.stringify(config));
  const { body, status } = await baton.admin('/config/reload?apply=true&format=json', { method: 'POST' });
  if (status !== 200 || JSON.parse(body).outcome !== 'applied') throw new Error(body);
}

function listening(tokens: number, text: string, others: Config[] = []): Config {
  const manager = limiting(limitOf('in', tokens), [
    answering({ prefix: '/route' }, 'r', { typed_per_filter_config: { limit: limitOf('r', 6) } }),
    answering({ prefix: '/' }, text),
  ]);
  return bootstrap({ listeners: [httpListener('in', 0, manager), ...others], clusters: [] });
}

t.test('the death of a worker neither returns tokens nor refills the bucket', async (t) => {
  const { baton, killWorker } = await startBreakableBaton(t, { config: listening(8, 'a'), args: ARGS });
  const port = await baton.listenerPort('in');
  t.equal(await passing(t, port), 8);
  t.equal(await passing(t, port, '/route'), 6);
  await killWorker('exit');
  await killWorker('throw');
  await waitFor(async () => (await httpRequest(port).catch(() => undefined))?.status === 429, {
    what: 'a 429 response',
  });
  t.equal(await passing(t, port), 0);
  t.equal(await passing(t, port, '/route'), 0);
});

t.test('a bucket keeps its tokens while its filter, or its route, is unchanged', async (t) => {
  const baton = await startBaton(t, { config: listening(8, 'a'), args: ARGS });
  const port = await baton.listenerPort('in');
  const other = httpListener('other', 0, limiting(limitOf('other', 1), []));
  t.equal(await passing(t, port), 8);
  t.equal(await passing(t, port, '/route'), 6);
  await reload(baton, listening(8, 'a', [other]));
  t.equal(await passing(t, port), 0, 'another listener was added');
  await reload(baton, listening(8, 'b', [other]));
  t.equal(await passing(t, port), 0, 'a route has another response');
  t.equal(await passing(t, port, '/route'), 0);
  await reload(baton, listening(5, 'b', [other]));
  t.equal(await passing(t, port), 5, 'a changed limit starts with a full bucket');
});

t.test(
  'discovered routes keep their buckets, on all workers and when other routes are inserted before them',
  async (t) => {
    const file = new ResourceFile(tempDir(t), 'routes');
    const limited = (tokens: number): Config => ({
      name: 'limited',
      domains: ['*'],
      routes: [answering({ prefix: '/' }, 'limited')],
      typed_per_filter_config: { limit: limitOf('hosts', tokens) },
    });
    const write = (...hosts: Config[]) =>
      file.write('envoy.config.route.v3.RouteConfiguration', { name: 'routes', virtual_hosts: hosts });
    write(limited(4));
    const { http_filters } = limiting({ stat_prefix: 'in' }, []);
    const manager = { http_filters, rds: { route_config_name: 'routes', config_source: file.source } };
    const config = bootstrap({ listeners: [httpListener('in', 0, manager)], clusters: [] });
    const { baton, killWorker } = await startBreakableBaton(t, { config, args: ARGS });
    const port = await baton.listenerPort('in');
    t.equal(await passing(t, port), 4);
    write({ name: 'new', domains: ['new'], routes: [answering({ prefix: '/' }, 'new')] }, limited(4));
    const isNew = async () => (await httpRequest(port, '/', { headers: { host: 'new' } })).body === 'new';
    await waitFor(isNew, { what: 'the routes' });
    t.equal(await passing(t, port), 0);
    await killWorker('exit');
    await waitFor(async () => (await httpRequest(port).catch(() => undefined))?.status === 429, {
      what: 'a 429 response',
    });
    t.equal(await passing(t, port), 0, 'a worker that starts later shares the bucket');
    write(limited(3));
    await waitFor(async () => !(await isNew()), { what: 'the routes' });
    t.equal(await passing(t, port), 2, 'one token was used by the check above');
  },
);
