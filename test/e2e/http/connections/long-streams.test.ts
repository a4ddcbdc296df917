// Long streams: a client that does not read costs no memory, and a tunnel is not limited by the response timeout.

import t from 'tap';
import { connectRaw, startTcpUpstream, staticCluster, waitFor } from '../../harness/index.js';
import { managerOf, routeTo, startProxy } from '../proxy.js';

t.test('a host is paused for a client that has not read earlier responses', async (t) => {
  const piece = Buffer.alloc(64 * 1024, 'x');
  let sent = 0;
  const endless = await startTcpUpstream(t, (socket) => {
    const writeMore = (): void => {
      while (socket.write(piece)) sent += piece.length;
    };
    socket.once('data', () => {
      socket.write('HTTP/1.1 200 OK\r\n\r\n');
      socket.on('drain', writeMore);
      writeMore();
    });
  });
  const large = { status: 200, body: { inline_string: 'y'.repeat(100_000) } };
  const proxy = await startProxy(t, {
    listeners: {
      a: {
        route_config: {
          max_direct_response_body_size_bytes: 100_000,
          virtual_hosts: [
            {
              name: 'all',
              domains: ['*'],
              routes: [{ match: { path: '/large' }, direct_response: large }, routeTo({ prefix: '/' }, 'endless')],
            },
          ],
        },
      },
    },
    clusters: [staticCluster('endless', endless.port)],
  });
  const client = await connectRaw(t, proxy.port);
  client.socket.pause();
  client.write(`${'GET /large HTTP/1.1\r\nHost: a\r\n\r\n'.repeat(600)}GET /endless HTTP/1.1\r\nHost: a\r\n\r\n`);
  const { baton } = proxy;
  await waitFor(async () => (await baton.stat('http.a.downstream_cx_tx_bytes_buffered'))! > 0);
  t.notOk(await baton.stat('cluster.endless.upstream_rq_total'), 'no request is sent to the host');
  client.socket.resume();
  await waitFor(() => sent > 0);
  client.socket.pause();
  const paused = 'cluster.endless.upstream_flow_control_paused_reading_total';
  await waitFor(async () => (await baton.stat(paused))! > 0, { what: "the host's connection to be paused" });
  let before = -1;
  const isHeldBack = (): boolean => {
    const isStill = sent === before;
    before = sent;
    return isStill;
  };
  await waitFor(isHeldBack, { what: 'the host to be held back' });
  t.pass('the host stays paused when the client stops in the middle');
});

t.test('a tunnel outlives the route timeout when its client half-closes', async (t) => {
  const finish: (() => void)[] = [];
  const server = await startTcpUpstream(t, (socket) => {
    socket.once('data', () => {
      socket.write('HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n');
      socket.on('end', () => finish.push(() => socket.end('the last word')));
      socket.resume();
    });
  });
  const proxy = await startProxy(t, {
    listeners: {
      a: managerOf(
        [
          routeTo({ path: '/tunnel' }, 'server', { timeout: '0.2s' }),
          { match: { prefix: '/' }, direct_response: { status: 200 } },
        ],
        { upgrade_configs: [{ upgrade_type: 'websocket' }] },
      ),
    },
    clusters: [staticCluster('server', server.port)],
  });
  const client = await connectRaw(t, proxy.port);
  client.write('GET /tunnel HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n');
  await client.readUntil('\r\n\r\n');
  client.end();
  await waitFor(() => finish.length === 1);
  // Longer than the timeout, measured by Baton's own timers.
  const end = performance.now() + 500;
  await waitFor(() => performance.now() > end);
  finish[0]!();
  t.same(await client.readToEnd(), { text: 'the last word', closed: 'end' });
});
