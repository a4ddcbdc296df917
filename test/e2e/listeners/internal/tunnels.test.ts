// A tunnel as service meshes open it: a TCP connection leads to an internal listener, which sends it through an HTTP proxy by CONNECT, with the
// destination from the metadata of the host. The result is that of Envoy 1.40.

import { besideEnvoy } from '../../harness/envoy.js';
import {
  type Config,
  connectRaw,
  freePort,
  HTTP2_CLUSTER,
  httpListener,
  startBaton,
  startTcpUpstream,
  staticCluster,
  tcpListener,
} from '../../harness/index.js';
import { routeConfig } from '../../http/proxy.js';
import { internal, internalBootstrap, internalCluster, internalUpstream } from './config.js';

besideEnvoy('a connection passes an internal listener and a proxy to its destination', async (t, program) => {
  const host = await startTcpUpstream(t, (socket) => void socket.pipe(socket));
  const port = await freePort();
  const outer = internalCluster('outer', 'tunnel', undefined, {
    transport_socket: internalUpstream([{ name: 'tunnel', kind: { host: {} } }]),
  });
  const [{ lb_endpoints: endpoints }] = (outer['load_assignment'] as { endpoints: [{ lb_endpoints: Config[] }] })
    .endpoints;
  endpoints[0]!['metadata'] = { filter_metadata: { tunnel: { destination: 'service.internal:80' } } };
  const connect = { cluster: 'host', upgrade_configs: [{ upgrade_type: 'CONNECT', connect_config: {} }] };
  const proxy = httpListener('proxy', port, {
    http2_protocol_options: { allow_connect: true },
    upgrade_configs: [{ upgrade_type: 'CONNECT' }],
    route_config: routeConfig([
      {
        name: 'service',
        domains: ['service.internal:80'],
        routes: [{ match: { connect_matcher: {} }, route: connect }],
      },
    ]),
  });
  const tunnel = { cluster: 'proxy', tunneling_config: { hostname: '%DYNAMIC_METADATA(tunnel:destination)%' } };
  const baton = await startBaton(t, {
    ...program,
    args: ['-l', 'error', '--concurrency', '1'],
    config: internalBootstrap(
      [tcpListener('front', 0, { cluster: 'outer' }), internal(tcpListener('tunnel', 0, tunnel)), proxy],
      [outer, staticCluster('proxy', port, HTTP2_CLUSTER), staticCluster('host', host.port)],
    ),
  });
  const client = await connectRaw(t, await baton.listenerPort('front'));
  client.write('through it');
  await client.readUntil('through it');
  client.end();
  t.equal((await client.readToEnd()).closed, 'end');
  await baton.waitForStats({ 'cluster.proxy.upstream_cx_http2_total': 1, 'cluster.outer.upstream_cx_active': 0 });
});
