// When descriptors are short, idle upstream connections are closed in favour of waiting clients.

import { readdirSync } from 'node:fs';
import type { ServerResponse } from 'node:http';
import t, { type Test } from 'tap';
import {
  bootstrap,
  type Config,
  connectRaw,
  httpListener,
  startBaton,
  startBlackHole,
  startUpstream,
  staticCluster,
  waitFor,
  waitForLog,
} from '../../harness/index.js';

const LIMIT = 256;
/** Accepting leaves a quarter of the limit free. */
const MAX_ACCEPTED = LIMIT - LIMIT / 4;
const IDLE = 60;
const wrapper = ['sh', '-c', `ulimit -n ${LIMIT}; exec "$@"`, 'sh'];

/** A host that answers on demand. */
async function startWaitingHost(t: Test) {
  const waiting: ServerResponse[] = [];
  const upstream = await startUpstream(t, (_, response) => waiting.push(response));
  const answerAll = () => {
    for (const response of waiting.splice(0)) response.end('done');
  };
  return { ...upstream, waiting, answerAll };
}

const get = (path: string) => `GET ${path} HTTP/1.1\r\nhost: a\r\n\r\n`;

t.test('idle upstream connections make room for waiting clients, and no other connections do', async (t) => {
  const used = await startWaitingHost(t);
  const hole = await startBlackHole(t);
  const to = (prefix: string, cluster: string): Config => ({
    match: { prefix },
    route: { cluster, timeout: '0s' },
  });
  const web = httpListener('web', 0, {
    route_config: {
      name: 'all',
      virtual_hosts: [{ name: 'all', domains: ['*'], routes: [to('/hole', 'hole'), to('/', 'used')] }],
    },
  });
  const clusters = [staticCluster('used', used.port), staticCluster('hole', hole, { connect_timeout: '3600s' })];
  const config = bootstrap({ listeners: [web], clusters });
  const baton = await startBaton(t, { config, wrapper, args: ['--concurrency', '1'] });
  const port = await baton.listenerPort('web');
  const own = readdirSync(`/proc/${baton.pid}/fd`).length;

  const burst = await Promise.all(Array.from({ length: IDLE }, () => connectRaw(t, port)));
  for (const client of burst) client.write(get('/'));
  await waitFor(() => used.waiting.length === IDLE, { what: 'as many requests at the host' });
  used.answerAll();
  for (const client of burst) await client.readUntil('done');
  for (const client of burst) client.destroy();
  await baton.waitForStats({ 'http.web.downstream_cx_active': 0, 'cluster.used.upstream_cx_active': IDLE });

  const busy = await connectRaw(t, port);
  busy.write(get('/'));
  await waitFor(() => used.waiting.length === 1, { what: 'the request at the host' });
  const connecting = await connectRaw(t, port);
  connecting.write(get('/hole'));
  await baton.waitForStat('cluster.hole.upstream_cx_active', 1);

  // More than there is room for beside the idle connections, and fewer than without them.
  const count = MAX_ACCEPTED - own - IDLE / 2;
  for (let index = 0; index < count; index++) await connectRaw(t, port);
  await baton.waitForStat('http.web.downstream_cx_active', count + 2);
  await waitForLog(baton, /\[warning\].*no more connections are accepted .*idle connections to hosts are closed/);
  await baton.waitForStats({
    'cluster.used.upstream_cx_active': 1,
    'cluster.used.upstream_cx_destroy': IDLE - 1,
    'cluster.used.upstream_cx_destroy_local': IDLE - 1,
    'cluster.used.upstream_cx_destroy_remote': 0,
    'cluster.used.upstream_cx_destroy_with_active_rq': 0,
    'cluster.used.upstream_cx_idle_timeout': 0,
    'cluster.used.circuit_breakers.default.cx_open': 0,
    'cluster.hole.upstream_cx_active': 1,
    'cluster.hole.upstream_cx_destroy': 0,
  });
  await waitFor(() => used.sockets.size === 1, { what: 'the host to see the close' });
  used.answerAll();
  t.match(await busy.readUntil('done'), /^HTTP\/1.1 200 OK/);
  t.equal(connecting.closed, 'open');
  await baton.stop();
});
