// Timeouts of requests that arrive together with the request before them.

import t from 'tap';
import { connectRaw, startEchoUpstream, staticCluster, waitFor } from '../../harness/index.js';
import { answering, managerOf, routeConfig, routeTo, startProxy } from '../proxy.js';

const GET = 'GET / HTTP/1.1\r\nHost: a\r\n\r\n';

/** More than the buffers of both sockets hold. */
const LARGE = 'x'.repeat(20_000_000);

const echo = await startEchoUpstream(t);
const routes = [routeTo({ prefix: '/' }, 'echo')];
const proxy = await startProxy(t, {
  listeners: {
    whole: managerOf(routes, { request_timeout: '3s' }),
    head: managerOf(routes, { request_headers_timeout: '0.3s' }),
    large: {
      route_config: routeConfig([{ name: 'all', domains: ['*'], routes: [answering({ prefix: '/' }, LARGE)] }], {
        max_direct_response_body_size_bytes: LARGE.length,
      }),
      stream_idle_timeout: '0.3s',
    },
  },
  clusters: [staticCluster('echo', echo.port)],
});

t.test('a pipelined request has its full request_timeout', async (t) => {
  const client = await connectRaw(t, proxy.ports['whole']!);
  await untilAfter(2000);
  client.write(`${GET}POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nab`);
  await untilAfter(1500);
  client.write('cde');
  await client.readUntil('"body":"abcde"');
});

t.test('a partial pipelined header section times out', async (t) => {
  const client = await connectRaw(t, proxy.ports['head']!);
  client.write(`${GET}GET / HTTP/1.1\r\nHo`);
  t.match((await client.readToEnd()).text, /HTTP\/1\.1 408 Request Timeout/);
});

t.test('the timeout of a request delayed by an unread response starts with its turn', async (t) => {
  const client = await connectRaw(t, proxy.ports['large']!);
  client.socket.pause();
  client.write(GET);
  await proxy.baton.waitForStat('http.large.downstream_rq_completed', 1);
  client.write(GET);
  await untilAfter(1500);
  client.socket.resume();
  await waitFor(() => client.received.length > 2 * LARGE.length || client.closed !== 'open');
  t.match(client.received.match(/HTTP\/1\.1 \d+/g), ['HTTP/1.1 200', 'HTTP/1.1 200']);
});

async function untilAfter(ms: number): Promise<void> {
  const end = performance.now() + ms;
  await waitFor(() => performance.now() > end);
}
