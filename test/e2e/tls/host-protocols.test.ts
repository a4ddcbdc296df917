// The protocol of connections to hosts over TLS: what is offered by ALPN, auto_config, and the protocol of the client.

import { Authority } from '../harness/certificates.js';
import { besideEnvoy } from '../harness/envoy.js';
import { type Config, clusterHttpOptions, staticCluster, waitFor } from '../harness/index.js';
import { exchange, openSession, request2 } from '../http/h2/http2-client.js';
import { managerOf, routeTo, startProxy } from '../http/proxy.js';
import { clientTls } from './contexts.js';
import { type Answering, startNegotiatingHost } from './negotiating-host.js';

const root = await Authority.create();
const server = await root.issue({ names: ['server.test'] });

const OPTIONS: Readonly<Record<string, Config>> = {
  plain: {},
  http1: clusterHttpOptions({ explicit_http_config: { http_protocol_options: {} } }),
  http2: clusterHttpOptions({ explicit_http_config: { http2_protocol_options: {} } }),
  auto: clusterHttpOptions({ auto_config: {} }),
  same: clusterHttpOptions({ use_downstream_protocol_config: {} }),
  old: { protocol_selection: 'USE_DOWNSTREAM_PROTOCOL' },
};

/** Starts a proxy with a route to each of these clusters, by the first part of the path. */
function startClusters(t: Parameters<typeof startProxy>[0], program: object, clusters: readonly Config[]) {
  const routes = clusters.map(({ name }) => routeTo({ prefix: `/${String(name)}/` }, String(name), { timeout: '60s' }));
  return startProxy(t, { ...program, listeners: { main: managerOf(routes) }, clusters: [...clusters] });
}

besideEnvoy(
  'connections offer the protocols that they may use, unless the context lists others',
  async (t, program) => {
    const host = await startNegotiatingHost(t, server);
    const tls = (common: Config = {}) => ({ transport_socket: clientTls(common) });
    const proxy = await startClusters(t, program, [
      ...Object.entries(OPTIONS).map(([name, options]) => staticCluster(name, host.port, { ...tls(), ...options })),
      staticCluster('listed', host.port, { ...tls({ alpn_protocols: ['http/1.1'] }), ...OPTIONS['auto'] }),
      staticCluster('wrong', host.port, { ...tls({ alpn_protocols: ['h2'] }), ...OPTIONS['http1'] }),
    ]);
    for (const [name, offered, byHttp1, byHttp2] of [
      ['plain', ['http/1.1'], '1.1', '1.1'],
      ['http1', ['http/1.1'], '1.1', '1.1'],
      ['http2', ['h2'], '2.0', '2.0'],
      ['auto', ['h2,http/1.1'], '2.0', '2.0'],
      ['same', ['http/1.1', 'h2'], '1.1', '2.0'],
      ['old', ['http/1.1', 'h2'], '1.1', '2.0'],
      ['listed', ['http/1.1'], '1.1', '1.1'],
    ] as const) {
      host.offers.length = 0;
      t.equal((await proxy.get(`/${name}/`)).body, byHttp1, `${name}, client of HTTP/1.1`);
      t.equal((await request2(t, proxy.port, `/${name}/`)).body, byHttp2, `${name}, client of HTTP/2`);
      t.same(host.offers, offered, name);
    }
    t.equal((await proxy.get('/wrong/')).status, 502, 'HTTP/1.1 is sent where HTTP/2 was negotiated');
    await proxy.baton.waitForStats({
      'cluster.plain.upstream_cx_http1_total': 1,
      'cluster.auto.upstream_cx_http1_total': 0,
      'cluster.auto.upstream_cx_http2_total': 1,
      'cluster.same.upstream_cx_http1_total': 1,
      'cluster.same.upstream_cx_http2_total': 1,
      'cluster.listed.upstream_cx_http1_total': 1,
      'cluster.listed.upstream_cx_http2_total': 0,
    });
  },
);

const ALL = [1, 2, 3, 4, 5];

/** A handler that answers when all requests have arrived. */
function together(count: number): Answering {
  const waiting: (() => void)[] = [];
  return (request, answer) => {
    waiting.push(() => answer.end(request.httpVersion));
    if (waiting.length === count) for (const act of waiting.splice(0)) act();
  };
}

besideEnvoy(
  'with auto_config, requests that wait share a connection if the host selects HTTP/2',
  async (t, program) => {
    const both = await startNegotiatingHost(t, server, {}, together(5));
    const one = await startNegotiatingHost(t, server, { protocols: ['http/1.1'] }, together(5));
    const none = await startNegotiatingHost(t, server, { protocols: [] }, together(5));
    const hosts = { both, one, none };
    const proxy = await startClusters(t, program, [
      ...Object.entries(hosts).map(([name, { port }]) =>
        staticCluster(name, port, { transport_socket: clientTls(), ...OPTIONS['auto'] }),
      ),
      staticCluster('narrow', both.port, {
        transport_socket: clientTls(),
        ...clusterHttpOptions({ auto_config: { http2_protocol_options: { max_concurrent_streams: 2 } } }),
      }),
    ]);
    for (const [name, version, connections] of [
      ['both', '2.0', 1],
      ['one', '1.1', 5],
      ['none', '1.1', 5],
    ] as const) {
      for (const round of ['first', 'second']) {
        const answers = await Promise.all(ALL.map(() => proxy.get(`/${name}/`)));
        t.same(
          answers.map(({ body }) => body),
          ALL.map(() => version),
          `${name}, ${round} time`,
        );
        t.equal(hosts[name].sockets.length, connections, `${name}, ${round} time`);
      }
    }
    const answers = await Promise.all(ALL.map(() => proxy.get('/narrow/')));
    t.same(
      answers.map(({ body }) => body),
      ALL.map(() => '2.0'),
    );
    t.equal(both.sockets.length, 4, 'two requests share a connection');
  },
);

besideEnvoy('a failed handshake fails all requests that wait for its protocol', async (t, program) => {
  const host = await startNegotiatingHost(t, server, { protocols: ['other'] });
  const proxy = await startClusters(t, program, [
    staticCluster('a', host.port, { transport_socket: clientTls(), ...OPTIONS['auto'] }),
  ]);
  const answers = await Promise.all(ALL.map(() => proxy.get('/a/')));
  t.same(
    answers.map(({ status }) => status),
    ALL.map(() => 503),
  );
  await proxy.baton.waitForStats({ 'cluster.a.upstream_rq_pending_failure_eject': 5 });
});

besideEnvoy('without TLS, hosts are called with the protocol of the client', async (t, program) => {
  const { createServer } = await import('node:http2');
  const host = createServer((request, answer) => answer.end(request.httpVersion));
  await new Promise<void>((resolve) => host.listen(0, '127.0.0.1', resolve));
  t.teardown(() => host.close());
  const { port } = host.address() as { port: number };
  const proxy = await startClusters(t, program, [staticCluster('same', port, OPTIONS['same'])]);
  const session = openSession(t, proxy.port);
  t.equal((await exchange(session, '/same/')).body, '2.0');
  t.equal((await proxy.get('/same/')).status, 502, 'the host speaks HTTP/2 only');
  await waitFor(async () => (await proxy.baton.stat('cluster.same.upstream_cx_http1_total')) === 1, {
    what: 'HTTP/1.1',
  });
});
