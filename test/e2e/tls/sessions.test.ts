// Resumption of TLS sessions with clients.

import type { TLSSocket } from 'node:tls';
import t from 'tap';
import { Authority } from '../harness/certificates.js';
import { besideEnvoy } from '../harness/envoy.js';
import { bootstrap, EpochLine, waitFor } from '../harness/index.js';
import { httpsListener, secureConnection, serverTls, trustedCa } from './contexts.js';
import { MANAGER, startHttps } from './https-proxy.js';

const root = await Authority.create();
const server = await root.issue({ names: ['server.test'] });
const user = await (await root.issueAuthority('Intermediate')).issue({ names: ['user.test'] });
const ca = root.certificate;

/** Returns the session of a connection, after a request: tickets of TLS 1.3 come after the handshake. */
async function sessionOf(socket: TLSSocket): Promise<Buffer> {
  const answered = new Promise((resolve) => socket.once('data', resolve));
  socket.write('GET / HTTP/1.1\r\nhost: a\r\n\r\n');
  await answered;
  return socket.getSession()!;
}

for (const version of ['TLSv1.2', 'TLSv1.3'] as const) {
  besideEnvoy(`${version} sessions resume with tickets`, async (t, program) => {
    const { baton, port, ssl } = await startHttps(t, program, serverTls([server]));
    const options = { ca, minVersion: version, maxVersion: version };
    const session = await sessionOf(await secureConnection(t, port, options));
    const again = await secureConnection(t, port, { ...options, session });
    t.ok(again.isSessionReused());
    await baton.waitForStats({ [`${ssl}session_reused`]: 1, [`${ssl}handshake`]: 2 });
  });
}

besideEnvoy('a resumed connection of TLS 1.3 gives the ticket for the next one', async (t, program) => {
  const { port } = await startHttps(t, program, serverTls([server]));
  let session = await sessionOf(await secureConnection(t, port, { ca, minVersion: 'TLSv1.3' }));
  for (let i = 0; i < 3; i++) {
    const socket = await secureConnection(t, port, { ca, minVersion: 'TLSv1.3', session });
    t.ok(socket.isSessionReused(), `connection ${i}`);
    const ticket = new Promise<Buffer>((resolve) => socket.once('session', resolve));
    await sessionOf(socket);
    session = await ticket;
  }
});

t.test('workers share the keys of tickets', async (t) => {
  const { port } = await startHttps(t, { args: ['--concurrency', '4'] }, serverTls([server]));
  const session = await sessionOf(await secureConnection(t, port, { ca }));
  for (let i = 0; i < 20; i++) {
    const again = await secureConnection(t, port, { ca, session });
    t.ok(again.isSessionReused(), `connection ${i}`);
    again.destroy();
  }
});

besideEnvoy('no session resumes where resumption is disabled', async (t, program) => {
  const more = { disable_stateless_session_resumption: true, disable_stateful_session_resumption: true };
  const { port } = await startHttps(t, program, serverTls([server], {}, more));
  const options = { ca, maxVersion: 'TLSv1.2' } as const;
  const socket = await secureConnection(t, port, options);
  const session = socket.getSession()!;
  socket.write('GET / HTTP/1.1\r\nhost: a\r\n\r\n');
  await new Promise((resolve) => socket.once('data', resolve));
  const again = await secureConnection(t, port, { ...options, session });
  t.notOk(again.isSessionReused());
});

besideEnvoy('a client certificate that a session has proved counts in the resumed session', async (t, program) => {
  const common = { validation_context: trustedCa(root) };
  const tls = serverTls([server], common, { require_client_certificate: true });
  const { baton, port, ssl } = await startHttps(t, program, tls);
  const options = { ca, cert: user.chain, key: user.key, maxVersion: 'TLSv1.2' } as const;
  const socket = await secureConnection(t, port, options);
  const session = socket.getSession()!;
  const again = await secureConnection(t, port, { ...options, session });
  t.ok(again.isSessionReused());
  await baton.waitForStats({ [`${ssl}session_reused`]: 1, [`${ssl}no_certificate`]: 0 });
});

t.test('sessions resume in the processes of hot restarts', async (t) => {
  const line = new EpochLine(t);
  const listener = httpsListener('main', serverTls([server]), MANAGER);
  const config = bootstrap({ listeners: [listener], clusters: [] });
  const args = ['--parent-shutdown-time-s', '0', '--drain-time-s', '0'];
  const first = await line.start(0, { config, args });
  const port = await first.listenerPort('main');
  const sessions = new Map<string, Buffer>();
  const versions = ['TLSv1.2', 'TLSv1.3'] as const;
  for (const version of versions) {
    const socket = await secureConnection(t, port, { ca, minVersion: version, maxVersion: version });
    sessions.set(version, await sessionOf(socket));
    socket.destroy();
  }
  let previous = first;
  for (const epoch of [1, 2]) {
    const next = await line.start(epoch, { config, args });
    await waitFor(() => previous.exit !== undefined, { what: `the end of epoch ${epoch - 1}` });
    for (const version of versions) {
      const session = sessions.get(version)!;
      const again = await secureConnection(t, port, { ca, minVersion: version, maxVersion: version, session });
      t.ok(again.isSessionReused(), `${version} in epoch ${epoch}`);
      again.destroy();
    }
    previous = next;
  }
});
