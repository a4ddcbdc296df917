// envoy.transport_sockets.raw_buffer: plain bytes, as without a transport socket.

import t from 'tap';
import { bootstrap, httpListener, httpRequest, startBaton, startUpstream, staticCluster } from '../../harness/index.js';
import { managerOf, routeTo } from '../proxy.js';

const RAW_BUFFER = {
  name: 'envoy.transport_sockets.raw_buffer',
  typed_config: { '@type': 'type.googleapis.com/envoy.extensions.transport_sockets.raw_buffer.v3.RawBuffer' },
};

t.test('a listener and a cluster with raw_buffer serve plain bytes', async (t) => {
  const upstream = await startUpstream(t, (_request, answer) => void answer.end('from the host'));
  const listener = httpListener('main', 0, managerOf([routeTo({ prefix: '/' }, 'host')]));
  const [chain] = listener['filter_chains'] as object[];
  const baton = await startBaton(t, {
    config: bootstrap({
      listeners: [{ ...listener, filter_chains: [{ ...chain, transport_socket: RAW_BUFFER }] }],
      clusters: [{ ...staticCluster('host', upstream.port), transport_socket: { name: RAW_BUFFER.name } }],
    }),
  });
  const answer = await httpRequest(await baton.listenerPort('main'), '/');
  t.match(answer, { status: 200, body: 'from the host' });
});
