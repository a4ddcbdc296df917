// weighted_clusters distributes connections by weight.

import t from 'tap';
import { bootstrap, startBaton, startTcpUpstream, staticCluster, tcpListener } from '../harness/index.js';
import { openStream } from './stream.js';

const CONNECTIONS = 400;

const light = await startTcpUpstream(t, (socket) => socket.end('light'));
const heavy = await startTcpUpstream(t, (socket) => socket.end('heavy'));
const baton = await startBaton(t, {
  config: bootstrap({
    listeners: [
      tcpListener('weighted', 0, {
        weighted_clusters: {
          clusters: [
            { name: 'light', weight: 1 },
            { name: 'heavy', weight: 3 },
          ],
        },
      }),
    ],
    clusters: [staticCluster('light', light.port), staticCluster('heavy', heavy.port)],
  }),
});

t.test('each cluster gets its share', async (t) => {
  const port = await baton.listenerPort('weighted');
  const greetings = new Map<string, number>();
  for (let index = 0; index < CONNECTIONS; index += 20) {
    const clients = await Promise.all(Array.from({ length: 20 }, () => openStream(t, port)));
    for (const client of clients) {
      await client.isClosed();
      greetings.set(client.head, (greetings.get(client.head) ?? 0) + 1);
      client.end();
    }
  }
  t.same([...greetings.keys()].sort(), ['heavy', 'light']);
  // One quarter, within five standard deviations.
  const share = greetings.get('light')!;
  t.ok(Math.abs(share - CONNECTIONS / 4) < 44, `${share} of ${CONNECTIONS} went to a cluster of weight 1 of 4`);
  t.equal(light.accepted() + heavy.accepted(), CONNECTIONS);
});
