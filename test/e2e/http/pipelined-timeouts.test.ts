// Timeouts of requests that arrive together with the one before them.

import t from 'tap';
import { connectRaw, startEchoUpstream, staticCluster, waitFor } from '../harness/index.js';
import { managerOf, routeTo, startProxy } from './proxy.js';

const GET = 'GET / HTTP/1.1\r\nHost: a\r\n\r\n';

const echo = await startEchoUpstream(t);
const routes = [routeTo({ prefix: '/' }, 'echo')];
const proxy = await startProxy(t, {
  listeners: {
    whole: managerOf(routes, { request_timeout: '3s' }),
    head: managerOf(routes, { request_headers_timeout: '0.3s' }),
  },
  clusters: [staticCluster('echo', echo.port)],
});

t.test('a pipelined request has its whole request_timeout', async (t) => {
  const client = await connectRaw(t, proxy.ports['whole']!);
  await untilAfter(2000);
  client.write(`${GET}POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nab`);
  await untilAfter(1500);
  client.write('cde');
  await client.readUntil('"body":"abcde"');
});

t.test('the beginning of a pipelined head does not wait for ever', async (t) => {
  const client = await connectRaw(t, proxy.ports['head']!);
  client.write(`${GET}GET / HTTP/1.1\r\nHo`);
  t.match((await client.readToEnd()).text, /HTTP\/1\.1 408 Request Timeout/);
});

async function untilAfter(ms: number): Promise<void> {
  const end = performance.now() + ms;
  await waitFor(() => performance.now() > end);
}
