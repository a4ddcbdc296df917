// An access logger on a worker sends batches by TCP to a cluster, flushed by a timer, and reconnects after the connection
// breaks.

import type { Socket } from 'node:net';
import t from 'tap';
import {
  bootstrap,
  httpListener,
  startBaton,
  startTcpUpstream,
  staticCluster,
  UNBUNDLED,
  waitFor,
  waitForLog,
} from '../../harness/index.js';
import { answering, managerOf, startProxy } from '../proxy.js';

const sockets: Socket[] = [];
let received = '';
const collector = await startTcpUpstream(t, (socket) => {
  sockets.push(socket);
  socket.setEncoding('latin1').on('data', (text: string) => {
    received += text;
  });
});
const logger = {
  '@type': 'type.googleapis.com/envoy.extensions.access_loggers.fluentd.v3.FluentdAccessLogConfig',
  cluster: 'collector',
  tag: 't',
  stat_prefix: 's',
  record: {},
  buffer_flush_interval: '0.05s',
};
const proxy = await startProxy(t, {
  program: UNBUNDLED,
  nodeArgs: ['--import', new URL('./batching-logger.js', import.meta.url).href],
  listeners: {
    main: managerOf([answering({ prefix: '/' }, 'here')], {
      access_log: [
        { name: 'faulty', typed_config: { ...logger, cluster: 'nowhere', tag: 'faulty' } },
        { name: 'batches', typed_config: logger },
      ],
    }),
  },
  clusters: [staticCluster('collector', collector.port), staticCluster('nowhere', [])],
});

t.test('each line arrives once', async (t) => {
  await Promise.all(['/a', '/b', '/c'].map((path) => proxy.get(path)));
  await waitFor(() => lines().length === 3, { what: 'three lines' });
  t.same(lines().sort(), ['/a 200', '/b 200', '/c 200']);
  t.equal(collector.accepted(), 1);
});

t.test('the logger reconnects after the collector has closed the connection', async (t) => {
  sockets[0]!.resetAndDestroy();
  await waitForLog(proxy.baton, 'lines are lost: the host has reset the connection');
  await proxy.get('/d');
  await waitFor(() => lines().includes('/d 200'), { what: 'the next line' });
  t.equal(collector.accepted(), 2);
  t.match(await proxy.baton.stats('cluster.collector.upstream_cx_'), { total: 2, active: 1 });
});

t.test('unsent lines are sent when the server exits, even though another logger fails', async (t) => {
  await proxy.get('/e');
  await proxy.baton.stop();
  await waitFor(() => lines().includes('/e 200'), { what: 'the last line' });
  t.match(proxy.baton.stderr, 'a mistake in close()');
  t.notMatch(proxy.baton.stderr, 'unhandled promise rejection', 'the worker has exited cleanly');
});

function lines(): string[] {
  return received.split(/[[\];]+/).filter((line) => line !== '');
}

t.test('an access logger whose createOnWorker() returns nothing is refused', async (t) => {
  const access_log = [{ name: 'async', typed_config: { ...logger, tag: 'async' } }];
  const main = httpListener('main', 0, managerOf([answering({ prefix: '/' }, 'here')], { access_log }));
  const baton = await startBaton(t, {
    program: UNBUNDLED,
    nodeArgs: ['--import', new URL('./batching-logger.js', import.meta.url).href],
    config: bootstrap({ listeners: [main], clusters: [staticCluster('collector', collector.port)] }),
    wait: 'spawned',
  });
  t.equal((await baton.exited).code, 1);
  t.match(
    baton.stderr,
    "createOnWorker() of 'envoy.access_loggers.fluentd' returned no object with needs, log() and close()",
  );
});
