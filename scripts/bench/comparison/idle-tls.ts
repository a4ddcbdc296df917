// Opens idle TLS connections, each after one request: `node idle-tls.js PORT COUNT`. Prints a line when all are open, and holds them until it
// is ended.

import { connect } from 'node:tls';

const [port, count] = process.argv.slice(2).map(Number) as [number, number];
const REQUEST = 'GET /small HTTP/1.1\r\nHost: localhost\r\n\r\n';
/** Handshakes at a time. */
const AT_ONCE = 16;

let started = 0;
let open = 0;
for (let i = 0; i < AT_ONCE; i++) next();

function next(): void {
  if (started === count) return;
  started++;
  const options = { port, host: '127.0.0.1', servername: 'localhost', rejectUnauthorized: false };
  const socket = connect({ ...options, minVersion: 'TLSv1.3' }, () => socket.write(REQUEST));
  socket.once('data', () => {
    open++;
    if (open === count) process.stdout.write('open\n');
    next();
  });
  socket.on('error', (error) => {
    process.stderr.write(`${error.message}\n`);
    process.exit(1);
  });
}
