// Clients that do not read: bytes buffered for them count as memory of the worker. When memory is short, the connections that
// have read nothing for longest are closed, and other clients are served.

import { connect, type Socket } from 'node:net';
import { join } from 'node:path';
import t from 'tap';
import {
  type BatonProcess,
  bootstrap,
  type Config,
  fileAccessLog,
  httpListener,
  httpRequest,
  logLines,
  routeAllTo,
  startBaton,
  startUpstream,
  staticCluster,
  type Teardown,
  tcpListener,
  tempDir,
  waitFor,
} from '../../harness/index.js';

const LIMIT_MB = 16;
/** The kernel buffers 200 KB for each of them: they use Unix sockets. */
const READERS = 120;
const ANSWER = Buffer.alloc(2_000_000, 'x');
const directory = tempDir(t);
const logPath = join(directory, 'log');
const httpPath = join(directory, 'http.sock');
const tcpPath = join(directory, 'tcp.sock');

const upstream = await startUpstream(t, (incoming, outgoing) => {
  outgoing.end(incoming.url === '/small' ? 'small' : ANSWER);
});
const log = fileAccessLog(logPath);
const log_format = { text_format_source: { inline_string: '%RESPONSE_FLAGS% %RESPONSE_CODE_DETAILS%\n' } };
const manager = {
  access_log: [{ ...log, typed_config: { ...(log['typed_config'] as Config), log_format } }],
  route_config: routeAllTo('host'),
};

function start(t: Teardown): Promise<BatonProcess> {
  return startBaton(t, {
    args: ['-l', 'error', '--worker-buffer-memory-mb', String(LIMIT_MB), '--file-flush-interval-msec', '50'],
    config: bootstrap({
      listeners: [
        httpListener('main', 0, manager),
        { ...httpListener('http', 0, manager), address: { pipe: { path: httpPath } } },
        { ...tcpListener('tcp', 0, { cluster: 'host' }), address: { pipe: { path: tcpPath } } },
      ],
      clusters: [staticCluster('host', upstream.port)],
    }),
  });
}

const GET = 'GET /large HTTP/1.1\r\nhost: a\r\n\r\n';

for (const [what, path, request] of [
  ['downloads', httpPath, GET],
  ['downloads with pipelined requests after them', httpPath, GET.repeat(1000)],
  ['TCP streams', tcpPath, GET],
] as const) {
  t.test(`${what} that are not read`, async (t) => {
    const baton = await start(t);
    const memory = () => baton.stats('server.worker_0.buffer_memory_');
    let mostUnsent = 0;
    const ended = async () => {
      const { ended, unsent } = await memory();
      mostUnsent = Math.max(mostUnsent, unsent!);
      return ended!;
    };
    const readers: Socket[] = [];
    for (let i = 0; i < READERS; i++) readers.push(await reader(t, path, request));
    await waitFor(async () => (await ended()) >= 20);
    const port = await baton.listenerPort('main');
    for (let i = 0; i < 10; i++) {
      const { status, body } = await httpRequest(port, '/large', { headers: { 'x-long': 'b'.repeat(50_000) } });
      t.equal(status, 200);
      t.equal(body.length, ANSWER.length);
    }
    t.ok(mostUnsent > 4_000_000 && mostUnsent <= LIMIT_MB * 1024 * 1024, `${mostUnsent} bytes were buffered at most`);
    if (path === httpPath) {
      await waitFor(() => logLines(logPath).filter((line) => line === 'OM memory_pressure').length >= 20);
    }
    for (const each of readers) each.destroy();
    await waitFor(async () => (await memory())['unsent'] === 0);
    t.equal((await httpRequest(port, '/small')).body, 'small');
  });
}

/** Opens a client that sends a request and does not read. */
async function reader(t: Teardown, path: string, request: string): Promise<Socket> {
  const socket = connect(path);
  t.teardown(() => socket.destroy());
  socket.on('error', () => {});
  await new Promise((resolve) => socket.once('connect', resolve));
  socket.pause();
  socket.write(request);
  return socket;
}
