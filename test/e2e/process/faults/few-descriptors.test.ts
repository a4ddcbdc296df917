// A flood of connections leaves the descriptors that operators need: their actions on a running server succeed meanwhile.

import { readdirSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import {
  type BatonProcess,
  bootstrap,
  type Config,
  connectRaw,
  EpochLine,
  fileAccessLog,
  httpListener,
  httpRequest,
  type RawConnection,
  routeAllTo,
  startBaton,
  startUpstream,
  staticCluster,
  tcpListener,
  tempDir,
  waitFor,
  waitForLog,
} from '../../harness/index.js';

const LIMIT = 256;
const wrapper = ['sh', '-c', `ulimit -n ${LIMIT}; exec "$@"`, 'sh'];
const SHORTAGE = /\[warning\].*no more connections are accepted .*ulimit -n/;
/** Its host answers nothing, so each request holds two descriptors. */
const silent = await startUpstream(t, () => {});

function configuration(log: string, more: Config[] = []): Config {
  const config = bootstrap({
    listeners: [
      httpListener('web', 0, {
        route_config: routeAllTo('silent', { timeout: '0s' }),
        access_log: [fileAccessLog(log)],
      }),
      tcpListener('tcp', 0, { cluster: 'silent' }),
    ],
    clusters: [staticCluster('silent', silent.port), ...more],
  });
  return { ...config, admin: { ...(config['admin'] as Config), profile_path: `${log}.profile` } };
}

/** Opens connections until no more are accepted, with requests that wait for the host. */
async function flood(t: Test, baton: BatonProcess): Promise<RawConnection[]> {
  const ports = [await baton.listenerPort('web'), await baton.listenerPort('tcp')];
  const connections: RawConnection[] = [];
  for (let count = 0; count < LIMIT; count++) {
    const connection = await connectRaw(t, ports[count % 2]!);
    if (count % 3 === 0) connection.write('GET / HTTP/1.1\r\nhost: a\r\n\r\n');
    connections.push(connection);
  }
  await waitForLog(baton, SHORTAGE);
  for (const [index, connection] of connections.entries()) {
    if (index % 3 > 0) connection.write('GET / HTTP/1.1\r\nhost: a\r\n\r\n');
  }
  return connections;
}

const post = (baton: BatonProcess, path: string) => baton.admin(path, { method: 'POST', deadlineMs: 10_000 });

for (const workers of [1, 3]) {
  t.test(`operators can do everything while ${workers} workers are flooded`, async (t) => {
    const log = join(tempDir(t), 'access.log');
    const baton = await startBaton(t, { config: configuration(log), wrapper, args: ['--concurrency', `${workers}`] });
    const connections = await flood(t, baton);
    t.ok(readdirSync(`/proc/${baton.pid}/fd`).length <= LIMIT - LIMIT / 16, 'connections leave some descriptors free');

    for (const path of ['/ready', '/stats', '/clusters', '/config_dump', '/memory', '/']) {
      t.equal((await baton.admin(path, { deadlineMs: 10_000 })).status, 200, path);
    }
    t.equal((await post(baton, '/cpuprofiler?enable=y')).status, 200);
    t.equal((await post(baton, '/cpuprofiler?enable=n')).status, 200, 'a profile');
    t.equal((await baton.admin('/heap_dump')).status, 200);

    writeFileSync(baton.configPath, JSON.stringify(configuration(log, [staticCluster('added', silent.port)])));
    t.match(await post(baton, '/config/reload?apply=true&format=json'), {
      status: 200,
      body: /"outcome":\s*"applied"/,
    });
    t.match((await baton.admin('/clusters')).body, /^added::/m);

    renameSync(log, `${log}.1`);
    baton.child.kill('SIGUSR1');
    await waitFor(() => readdirSync(join(log, '..')).includes('access.log'), { what: 'the new log file' });

    for (const connection of connections) connection.destroy();
    await baton.waitForStat('http.web.downstream_cx_active', 0);
    await baton.stop();
  });
}

t.test('a flooded server can be hot-restarted', async (t) => {
  const line = new EpochLine(t);
  const config = configuration(join(tempDir(t), 'access.log'));
  const args = ['--concurrency', '4', '--parent-shutdown-time-s', '2', '--drain-time-s', '1'];
  const parent = await line.start(0, { config, wrapper, args });
  const connections = await flood(t, parent);
  const child = await line.start(1, { config, args });
  for (const connection of connections) connection.destroy();
  await waitFor(() => parent.exit !== undefined, { what: 'the exit of the parent' });
  t.same(parent.exit, { code: 0, signal: null });
  t.equal((await child.admin('/ready')).status, 200);
  await child.stop();
});

t.test('accepting resumes normally, and the shortage is logged once', async (t) => {
  const baton = await startBaton(t, { config: configuration(join(tempDir(t), 'access.log')), wrapper });
  const port = await baton.listenerPort('web');
  const connections = await flood(t, baton);
  // Each that closes lets one in.
  for (const connection of connections.splice(0, 40)) {
    connection.destroy();
    connections.push(await connectRaw(t, port));
  }
  for (const connection of connections) connection.destroy();
  await baton.waitForStat('http.web.downstream_cx_active', 0);
  const request = httpRequest(port, '/').catch(() => undefined);
  await baton.waitForStat('http.web.downstream_cx_active', 1);
  t.equal(baton.stderr.split('\n').filter((each) => SHORTAGE.test(each)).length, 1);
  t.ok((await baton.stat('listener.web.downstream_cx_overflow'))! > 0);
  await baton.stop();
  await request;
});
