// connection_idle_interval: a request on a connection to a host that has been silent comes with a PING. All results are Envoy's.

import { createServer, type ServerHttp2Session } from 'node:http2';
import type { AddressInfo } from 'node:net';
import { performance } from 'node:perf_hooks';
import type { Test } from 'tap';
import { besideEnvoy } from '../../harness/envoy.js';
import { staticCluster, waitFor } from '../../harness/index.js';
import { managerOf, routeTo, startProxy } from '../proxy.js';

const IDLE_MS = 200;
const TYPE = 'type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions';
const CLUSTER = {
  typed_extension_protocol_options: {
    'envoy.extensions.upstreams.http.v3.HttpProtocolOptions': {
      '@type': TYPE,
      explicit_http_config: {
        http2_protocol_options: {
          connection_keepalive: { timeout: '5s', connection_idle_interval: `${IDLE_MS / 1000}s` },
        },
      },
    },
  },
};

async function startHost(t: Test) {
  const sessions = new Set<ServerHttp2Session>();
  const state = { pings: 0 };
  const server = createServer();
  server.on('session', (session) => {
    sessions.add(session);
    session.on('ping', () => state.pings++);
    session.on('close', () => sessions.delete(session));
  });
  server.on('stream', (stream) => {
    stream.respond({ ':status': 200 });
    stream.end();
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.teardown(() => {
    for (const session of sessions) session.destroy();
    server.close();
  });
  return { port: (server.address() as AddressInfo).port, state, sessions };
}

besideEnvoy('a request on a silent connection comes with a ping', async (t, program) => {
  const host = await startHost(t);
  const proxy = await startProxy(t, {
    ...program,
    args: ['--concurrency', '1'],
    listeners: { main: managerOf([routeTo({ prefix: '/' }, 'host')]) },
    clusters: [staticCluster('host', host.port, CLUSTER)],
  });
  const get = async () => t.equal((await proxy.get('/')).status, 200);
  await get();
  const lastMs = performance.now();
  await get();
  // A slow machine may need longer for the second request.
  if (performance.now() - lastMs < IDLE_MS) t.equal(host.state.pings, 0);
  const before = host.state.pings;
  const silentMs = performance.now();
  await waitFor(() => performance.now() - silentMs > IDLE_MS + 50);
  await get();
  await waitFor(() => host.state.pings === before + 1);
  t.equal(host.sessions.size, 1, 'the connection is still the same');
});
