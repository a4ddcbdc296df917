// Channels to gRPC services whose hosts misbehave.

import t from 'tap';
import { GrpcChannel } from '../../src/grpc/grpc-channel.js';
import { parseAddress } from '../../src/io/address.js';
import { startTcpUpstream, waitFor } from '../e2e/harness/index.js';

/** A host is connected to once in so long at most. */
const PAUSE_MS = 500;

t.test('a host that ends each connection as soon as it is there is not connected to without end', async (t) => {
  const server = await startTcpUpstream(t, (socket) => {
    // SETTINGS, and a GOAWAY that says that nothing was taken.
    socket.write(Buffer.from('0000000400000000000000080700000000000000000000000000', 'hex'));
  });
  const began = performance.now();
  const channel = new GrpcChannel(
    { envoy_grpc: { cluster_name: 'service' } },
    {
      watchHosts(_cluster, onHosts) {
        const timer = setImmediate(() => onHosts([parseAddress(`127.0.0.1:${server.port}`)!]));
        return () => clearImmediate(timer);
      },
      connectTimeoutMs: () => 5000,
    },
  );
  t.teardown(() => channel.close());
  await channel.ready();
  await waitFor(() => server.accepted() >= 4, { what: 'further connections' });
  const accepted = server.accepted();
  t.ok(accepted <= 2 + (performance.now() - began) / PAUSE_MS, `${accepted} connections`);
});
