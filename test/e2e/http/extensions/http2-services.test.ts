// HTTP services whose hosts use HTTP/2, in plaintext or negotiated by ALPN.

import { createServer, type IncomingHttpHeaders } from 'node:http2';
import type { AddressInfo } from 'node:net';
import { Authority } from '../../harness/certificates.js';
import { besideEnvoy } from '../../harness/envoy.js';
import {
  type Config,
  clusterHttpOptions,
  HTTP2_CLUSTER,
  ROUTER_FILTER,
  startEchoUpstream,
  staticCluster,
  waitFor,
} from '../../harness/index.js';
import { clientTls } from '../../tls/contexts.js';
import { startNegotiatingHost } from '../../tls/negotiating-host.js';
import { managerOf, routeTo, startProxy } from '../proxy.js';

const root = await Authority.create();
const server = await root.issue({ names: ['server.test'] });

function authorizedBy(cluster: string): Config {
  const filter = {
    '@type': 'type.googleapis.com/envoy.extensions.filters.http.ext_authz.v3.ExtAuthz',
    http_service: { server_uri: { uri: 'http://service.test', cluster, timeout: '5s' } },
  };
  return managerOf([routeTo({ prefix: '/' }, 'host')], {
    http_filters: [{ name: 'envoy.filters.http.ext_authz', typed_config: filter }, ROUTER_FILTER],
  });
}

besideEnvoy('ext_authz calls services over HTTP/2', async (t, program) => {
  const asked: IncomingHttpHeaders[] = [];
  const service = createServer((request, answer) => {
    asked.push(request.headers);
    answer.statusCode = request.url.includes('deny') ? 403 : 200;
    answer.end('why');
  });
  await new Promise<void>((resolve) => service.listen(0, '127.0.0.1', resolve));
  t.teardown(() => service.close());
  const versions: string[] = [];
  const secure = await startNegotiatingHost(t, server, {}, (request, answer) => {
    versions.push(request.httpVersion);
    answer.statusCode = request.url.includes('deny') ? 403 : 200;
    answer.end('why');
  });
  const proxy = await startProxy(t, {
    ...program,
    listeners: { plain: authorizedBy('plain'), secure: authorizedBy('secure') },
    clusters: [
      staticCluster('host', (await startEchoUpstream(t)).port),
      staticCluster('plain', (service.address() as AddressInfo).port, HTTP2_CLUSTER),
      staticCluster('secure', secure.port, {
        transport_socket: clientTls(),
        ...clusterHttpOptions({ auto_config: {} }),
      }),
    ],
  });
  for (const listener of ['plain', 'secure']) {
    t.equal((await proxy.on(listener, '/a?x=1', { method: 'POST', body: 'body' })).status, 200, listener);
    t.match(await proxy.on(listener, '/deny'), { status: 403, body: 'why' }, listener);
  }
  t.match({ ...asked[0] }, { ':method': 'POST', ':path': '/a?x=1', ':scheme': 'http', 'content-length': '0' });
  t.equal(asked[0]!['transfer-encoding'], undefined);
  t.same(versions, ['2.0', '2.0']);
  await proxy.baton.waitForStats({ 'cluster.plain.upstream_cx_http2_total': 1, 'cluster.plain.upstream_rq_total': 2 });
});

besideEnvoy('OpenTelemetry metrics are exported over HTTP/2', async (t, program) => {
  const exports: { headers: IncomingHttpHeaders; bytes: number }[] = [];
  const collector = createServer((request, answer) => {
    let bytes = 0;
    request.on('data', (chunk: Buffer) => {
      bytes += chunk.length;
    });
    request.on('end', () => {
      exports.push({ headers: request.headers, bytes });
      answer.end();
    });
  });
  await new Promise<void>((resolve) => collector.listen(0, '127.0.0.1', resolve));
  t.teardown(() => collector.close());
  await startProxy(t, {
    ...program,
    listeners: { main: managerOf([]) },
    clusters: [staticCluster('collector', (collector.address() as AddressInfo).port, HTTP2_CLUSTER)],
    extra: {
      stats_flush_interval: '0.2s',
      stats_sinks: [
        {
          name: 'envoy.stat_sinks.open_telemetry',
          typed_config: {
            '@type': 'type.googleapis.com/envoy.extensions.stat_sinks.open_telemetry.v3.SinkConfig',
            http_service: {
              http_uri: { uri: 'http://collector.test/v1/metrics', cluster: 'collector', timeout: '5s' },
            },
          },
        },
      ],
    },
  });
  await waitFor(() => exports.length > 1, { what: 'exports' });
  const { bytes, headers } = exports[0]!;
  t.match(
    { ...headers },
    {
      ':method': 'POST',
      ':path': '/v1/metrics',
      ':authority': 'collector.test',
      'content-type': 'application/x-protobuf',
    },
  );
  t.ok(bytes > 100);
});
