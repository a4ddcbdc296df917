// Clients that request a large answer and do not read it do not block others.

import { type ClientHttp2Session, connect as connectHttp2 } from 'node:http2';
import { connect } from 'node:net';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { AdminServer } from '../../../src/admin/http/admin-server.js';
import { parseAddress } from '../../../src/io/addresses/address.js';
import { ClusterStats } from '../../../src/stats/layouts/cluster.js';
import { tempDir } from '../../e2e/harness/environment.js';
import { httpRequest } from '../../e2e/harness/http-client.js';
import { waitFor } from '../../e2e/harness/wait-for.js';
import { captureLog } from '../capture-log.js';
import { FakeServices } from '../fixture.js';

/** More than there are slots for bodies. */
const SLOW = 140;
/** A client that is cut off is not logged as an error. */
const NOISE = /\[error\].*read almost nothing/;

t.test('connections that read nothing, or little, lose their slots', async (t) => {
  const log = captureLog(t);
  const { services, socketPath } = await startLarge(t);
  const trickle = setInterval(readSlowly(t, socketPath), 50);
  t.teardown(() => clearInterval(trickle));
  await waitFor(() => services.renders.bodies >= 128, { what: 'the bodies of the slow clients' });
  const { status, body } = await httpRequest(0, '/stats', { socketPath });
  t.equal(status, 200);
  t.ok(body.endsWith('cluster.c99.upstream_rq_per_cx: No recorded values\n'), 'the complete answer');
  t.match(log.text(), /cut off \d+ client\(s\) of large answers/, 'the slow clients are logged');
  t.notMatch(log.text(), NOISE, 'in one line');
});

t.test('HTTP/2 streams with a closed window lose their slots', async (t) => {
  const log = captureLog(t);
  const { services, socketPath } = await startLarge(t);
  const sessions = Array.from({ length: SLOW / 7 }, () => closedWindows(t, socketPath));
  for (const session of sessions) {
    for (let i = 0; i < 7; i++) session.request({ ':path': '/stats' }).on('error', () => {});
  }
  await waitFor(() => services.renders.bodies >= 128, { what: 'the bodies of the slow clients' });
  t.equal((await httpRequest(0, '/stats', { socketPath })).status, 200);
  t.notMatch(log.text(), NOISE);
});

/** Uses a Unix socket: the buffers of a TCP connection would hold megabytes of an answer. */
async function startLarge(t: Test) {
  const services = new FakeServices();
  for (let i = 0; i < 400; i++) services.stats.addScope(`cluster.c${i}.`, ClusterStats);
  const server = new AdminServer(services, { maxConnections: 2 * SLOW });
  t.teardown(() => server.close(0));
  const socketPath = join(tempDir(t), 'admin.sock');
  await server.listen({ address: parseAddress(socketPath)! });
  return { services, socketPath };
}

/** Requests all stats on several connections. The returned function reads a little from each. */
function readSlowly(t: Test, path: string): () => void {
  const sockets = Array.from({ length: SLOW }, () => {
    const socket = connect(path);
    socket.on('error', () => {});
    socket.write('GET /stats HTTP/1.1\r\nHost: a\r\n\r\n');
    t.teardown(() => socket.destroy());
    return socket;
  });
  return () => {
    for (const socket of sockets) socket.read(100);
  };
}

function closedWindows(t: Test, path: string): ClientHttp2Session {
  const settings = { initialWindowSize: 0 };
  const session = connectHttp2('http://a', { createConnection: () => connect(path), settings });
  session.on('error', () => {});
  t.teardown(() => session.destroy());
  return session;
}
