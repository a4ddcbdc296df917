// An upstream host that speaks TLS.

import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { createServer, type TLSSocket } from 'node:tls';
import { type Teardown, tempDir } from '../harness/index.js';

/** Answers each piece of data with `pong from <requested name>`. */
export async function startTlsUpstream(t: Teardown, name: string): Promise<{ port: number; certificate: Buffer }> {
  const directory = tempDir(t);
  const [keyFile, certificateFile] = [`${directory}/key.pem`, `${directory}/certificate.pem`];
  execFileSync(
    'openssl',
    [
      ...['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-days', '2'],
      ...['-subj', `/CN=${name}`, '-addext', `subjectAltName=DNS:${name}`, '-keyout', keyFile, '-out', certificateFile],
    ],
    { stdio: 'ignore' },
  );
  const certificate = readFileSync(certificateFile);
  const server = createServer({ key: readFileSync(keyFile), cert: certificate }, (socket: TLSSocket) => {
    socket.on('error', () => {});
    socket.on('data', () => socket.write(`pong from ${String(socket.servername)}`));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.teardown(async () => new Promise((resolve) => server.close(resolve)));
  return { port: (server.address() as { port: number }).port, certificate };
}
