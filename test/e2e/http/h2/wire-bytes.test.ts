// %…_WIRE_BYTES_…% and %…_HEADER_BYTES_…% of HTTP/2 streams. As in Envoy, frames count with their headers.

import { createServer, type ServerHttp2Session } from 'node:http2';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import type { Test } from 'tap';
import { besideEnvoy } from '../../harness/envoy.js';
import { fileAccessLog, HTTP2_CLUSTER, logLines, staticCluster, tempDir, waitFor } from '../../harness/index.js';
import { managerOf, routeTo, startProxy } from '../proxy.js';
import { exchange, openSession } from './http2-client.js';

const FRAME_HEADER = 9;
const NAMES = ['clientReceived', 'clientSent', 'hostReceived', 'hostSent'] as const;
const KINDS = ['DOWNSTREAM_%_RECEIVED', 'DOWNSTREAM_%_SENT', 'UPSTREAM_%_RECEIVED', 'UPSTREAM_%_SENT'];
const OPERATORS = [
  ...KINDS.map((kind) => kind.replace('%', 'WIRE_BYTES')),
  ...KINDS.map((kind) => kind.replace('%', 'HEADER_BYTES')),
];
const FORMAT = `${['PATH', ...OPERATORS].map((operator) => `%${operator}%`).join(' ')}\n`;

besideEnvoy('heads, bodies and trailers are counted as they are on the wire', async (t, program) => {
  const path = join(tempDir(t), 'log');
  const port = await startHost(t);
  const proxy = await startProxy(t, {
    ...program,
    args: ['-l', 'warning', '--concurrency', '1', '--file-flush-interval-msec', '50'],
    listeners: {
      main: managerOf([routeTo({ prefix: '/' }, 'host')], { access_log: [fileAccessLog(path, FORMAT)] }),
    },
    clusters: [staticCluster('host', port, HTTP2_CLUSTER)],
  });
  const session = openSession(t, proxy.port);
  const requests: [path: string, body: number, trailers: Record<string, string> | undefined, answer: number][] = [
    ['/a', 0, undefined, 10],
    ['/a', 0, undefined, 10],
    ['/body', 4, undefined, 4],
    ['/trailers', 3, { 'x-request': 'tail' }, 3],
    ['/large', 40_000, undefined, 40_000],
  ];
  for (const [path, body, trailers] of requests) {
    const headers = { ':method': body === 0 ? 'GET' : 'POST' };
    await exchange(session, path, {
      headers,
      ...(body > 0 && { body: 'x'.repeat(body) }),
      ...(trailers && { trailers }),
    });
  }
  const lines = await waitFor(() => logLines(path).length >= requests.length && logLines(path), { what: 'the log' });
  const seen: number[] = [];
  for (const [index, [path, body, , answer]] of requests.entries()) {
    const [logged, ...numbers] = lines[index]!.split(' ');
    t.equal(logged, path);
    const [clientReceived, , hostReceived] = numbers.slice(4).map(Number) as [number, number, number];
    seen.push(clientReceived, hostReceived);
    const bodies = [body, answer, answer, body];
    for (const [place, name] of NAMES.entries()) {
      const header = Number(numbers[4 + place]);
      const rest = Number(numbers[place]) - header - bodies[place]!;
      t.ok(header > FRAME_HEADER, `${path}: ${name} has a head`);
      // Each DATA frame has a header. Their number is the sender's choice.
      const most = bodies[place]! > 0 ? 1 + bodies[place]! / 4096 : 0;
      t.ok(
        rest % FRAME_HEADER === 0 && rest / FRAME_HEADER <= most + 1,
        `${path}: ${name} has the headers of frames (${rest})`,
      );
    }
  }
  // What Node sends is the same for every proxy.
  const [first, firstAnswer, second, secondAnswer] = seen;
  t.ok(second! < first! && secondAnswer! < firstAnswer!, 'known fields are shorter');
});

async function startHost(t: Test): Promise<number> {
  const sessions = new Set<ServerHttp2Session>();
  const server = createServer();
  server.on('session', (session) => sessions.add(session));
  server.on('stream', (stream) => {
    let received = 0;
    stream.on('error', () => {});
    stream.on('data', (part: Buffer) => {
      received += part.length;
    });
    stream.on('end', () => {
      stream.respond({ ':status': 200, 'x-a': 'b' });
      stream.end('x'.repeat(received === 0 ? 10 : received));
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.teardown(() => {
    for (const session of sessions) session.destroy();
    server.close();
  });
  return (server.address() as AddressInfo).port;
}
