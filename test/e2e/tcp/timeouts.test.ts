// TCP proxy connections are closed when they are idle for too long, or too old.

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import {
  bootstrap,
  fileAccessLog,
  startBaton,
  startBlackHole,
  staticCluster,
  tcpListener,
  tempDir,
  waitFor,
} from '../harness/index.js';
import { openStream, startPeers } from './stream.js';

const logs = tempDir(t);
const upstream = await startPeers(t);
const baton = await startBaton(t, {
  config: bootstrap({
    listeners: [
      tcpListener('idle', 0, { cluster: 'upstream', idle_timeout: '2s', access_log: [flagLog('idle')] }),
      tcpListener('old', 0, {
        cluster: 'upstream',
        max_downstream_connection_duration: '1s',
        access_log: [flagLog('old')],
      }),
      tcpListener('connecting', 0, { cluster: 'silent', idle_timeout: '0.2s', max_connect_attempts: 2 }),
      tcpListener('forever', 0, { cluster: 'upstream', idle_timeout: '0s' }),
    ],
    clusters: [
      staticCluster('upstream', upstream.port),
      staticCluster('silent', await startBlackHole(t), { connect_timeout: '0.5s' }),
    ],
  }),
  args: ['--file-flush-interval-msec', '50'],
});

t.test('idle_timeout closes both sides of a silent connection, and no other', async (t) => {
  const port = await baton.listenerPort('idle');
  const silent = await openStream(t, port);
  const silentServer = await upstream.next();
  const talking = await openStream(t, port);
  const talkingServer = await upstream.next();
  const listening = await openStream(t, port);
  const listeningServer = await upstream.next();
  const untouched = await openStream(t, await baton.listenerPort('forever'));
  await upstream.next();

  // Traffic in either direction keeps a connection alive.
  const chatter = setInterval(() => {
    talking.socket.write('.');
    listeningServer.socket.write('.');
  }, 100);
  t.teardown(() => clearInterval(chatter));

  t.equal(await silent.isClosed(), 'end');
  t.equal(await silentServer.isClosed(), 'end');
  const { length } = talkingServer;
  await talkingServer.receives(length + 10);
  t.equal(talking.closed, 'open');
  t.equal(listening.closed, 'open');
  await baton.waitForStat('tcp.idle.idle_timeout', 1);

  clearInterval(chatter);
  t.equal(await talking.isClosed(), 'end', 'it times out once it is silent');
  t.equal(await listening.isClosed(), 'end');
  t.equal(untouched.closed, 'open', '0 disables the timeout');
  await baton.waitForStat('tcp.idle.idle_timeout', 3);
  t.equal(await baton.stat('tcp.forever.idle_timeout'), 0);
});

t.test('a connection that is still being established is not idle', async (t) => {
  const client = await openStream(t, await baton.listenerPort('connecting'));
  t.equal(await client.isClosed(), 'end');
  await baton.waitForStat('cluster.silent.upstream_cx_connect_timeout', 2);
  t.equal(await baton.stat('tcp.connecting.idle_timeout'), 0);
});

t.test('max_downstream_connection_duration closes a connection during its traffic', async (t) => {
  const client = await openStream(t, await baton.listenerPort('old'));
  const server = await upstream.next();
  const chatter = setInterval(() => {
    if (client.closed === 'open') client.socket.write('.');
  }, 20);
  t.teardown(() => clearInterval(chatter));
  await server.receives(5);
  t.not(await client.isClosed(), 'open');
  t.not(await server.isClosed(), 'open');
  await baton.waitForStat('tcp.old.max_downstream_connection_duration', 1);
  t.equal(await baton.stat('tcp.old.idle_timeout'), 0);
});

t.test('the log distinguishes the two: an idle timeout is not a failure', async () => {
  for (const [name, lines] of Object.entries({ idle: '- idle_timeout\n'.repeat(3), old: 'DT -\n' })) {
    await waitFor(() => readFileSync(join(logs, name), 'utf8') === lines, { what: `the lines of ${name}` });
  }
});

function flagLog(name: string) {
  return fileAccessLog(join(logs, name), '%RESPONSE_FLAGS% %CONNECTION_TERMINATION_DETAILS%\n');
}
