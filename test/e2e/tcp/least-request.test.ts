// TCP proxy connections count for LEAST_REQUEST.

import t from 'tap';
import { bootstrap, startBaton, staticCluster, tcpListener, waitFor } from '../harness/index.js';
import { openStream, startPeers } from './stream.js';

const CONNECTIONS = 40;

const keeping = await startPeers(t);
const ending = await startPeers(t);
const baton = await startBaton(t, {
  config: bootstrap({
    listeners: [tcpListener('wire', 0, { cluster: 'both' })],
    clusters: [
      staticCluster('both', [keeping.port, ending.port], {
        lb_policy: 'LEAST_REQUEST',
        // So many choices that one of them includes the host with the fewest requests.
        least_request_lb_config: { choice_count: 20 },
      }),
    ],
  }),
  args: ['--concurrency', '1'],
});
const port = await baton.listenerPort('wire');

t.test('a host with open connections gets no more while another host has none', async (t) => {
  for (let index = 1; index <= CONNECTIONS; index++) {
    const ended = ending.streams.length;
    const client = await openStream(t, port);
    await waitFor(() => keeping.streams.length + ending.streams.length === index);
    if (ending.streams.length > ended) {
      client.socket.destroy();
      ending.streams.at(-1)!.socket.destroy();
    }
    await baton.waitForStat('cluster.both.upstream_rq_active', keeping.streams.length);
  }
  t.ok(keeping.streams.length <= 2, `${keeping.streams.length} of ${CONNECTIONS}`);
  t.equal(await baton.stat('cluster.both.upstream_rq_total'), CONNECTIONS, 'each connection counts as a request');
});
