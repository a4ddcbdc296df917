// Bytes that pass from a client to a host and back, encrypted on both sides.

import { createHash, randomBytes } from 'node:crypto';
import { request } from 'node:https';
import t from 'tap';
import { Authority } from '../harness/certificates.js';
import { bootstrap, routeAllTo, startBaton, staticCluster, waitFor } from '../harness/index.js';
import { clientTls, httpsListener, serverTls, startSecureHost } from './contexts.js';

const root = await Authority.create();
const server = await root.issue({ names: ['server.test'] });
const ca = root.certificate;

t.test('a large upload and download pass unchanged while both sides are slow', async (t) => {
  const host = await startSecureHost(t, server, (request, answer) => request.pipe(answer));
  const cluster = staticCluster('host', host.port, { transport_socket: clientTls() });
  const listener = httpsListener('main', serverTls([server]), {
    codec_type: 'HTTP1',
    route_config: routeAllTo('host'),
  });
  const baton = await startBaton(t, { config: bootstrap({ listeners: [listener], clusters: [cluster] }) });
  const sent = randomBytes(12_000_000);
  const received = createHash('sha256');
  const port = await baton.listenerPort('main');
  await new Promise<void>((resolve, reject) => {
    const client = request({ host: '127.0.0.1', port, ca, servername: 'server.test', method: 'POST' }, (answer) => {
      answer.on('data', (chunk: Buffer) => {
        received.update(chunk);
        answer.pause();
        setImmediate(() => answer.resume());
      });
      answer.on('end', resolve);
    });
    client.on('error', reject);
    client.end(sent);
  });
  t.equal(received.digest('hex'), createHash('sha256').update(sent).digest('hex'));
  await waitFor(async () => (await baton.stat('cluster.host.ssl.handshake')) === 1, { what: 'the handshake' });
});
