// Limits of connections to the admin interface.

import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { connect as connectHttp2 } from 'node:http2';
import type { Socket } from 'node:net';
import t, { type Test } from 'tap';
import type { AdminHandler } from '../../../src/admin/admin-handler.js';
import { HANDLERS } from '../../../src/admin/handlers/index.js';
import type { AdminServerOptions } from '../../../src/admin/http/admin-server.js';
import { AdminTraffic } from '../../../src/admin/http/connections/admin-traffic.js';
import { StatsStore } from '../../../src/stats/store.js';
import { httpRequest } from '../../e2e/harness/http-client.js';
import { FrameFlag, FrameType, frame, opening, request, requestFields } from '../../e2e/harness/http2-frames.js';
import { connectRaw, type RawConnection } from '../../e2e/harness/raw-connection.js';
import { waitFor } from '../../e2e/harness/wait-for.js';
import { captureLog } from '../capture-log.js';
import { startAdmin, streaming } from '../fixture.js';

const GET = 'GET /ready HTTP/1.1\r\nHost: a\r\n\r\n';
const PIECE = Buffer.alloc(64 * 1024, 'x');

async function start(t: Test, options: AdminServerOptions) {
  const store = new StatsStore({ workers: 1 });
  const fixture = await startAdmin(t, { ...options, traffic: new AdminTraffic(store) });
  return { ...fixture, stat: (name: string) => store.value(name) };
}

const PING = frame(FrameType.Ping, 0, 0, Buffer.alloc(8));

/** What a client sends first, and then repeatedly. Within a head of HTTP/2 only CONTINUATION frames are allowed. */
const IDLE: Readonly<Record<string, readonly [string | Buffer, (string | Buffer)?]>> = {
  'has sent nothing': [''],
  'sends a head slowly': ['GET /ready HTTP/1.1\r\nHost: ', 'a'],
  'has received its answer': [GET],
  'uses HTTP/2 without a request': [opening(), PING],
  'sends a head of HTTP/2 slowly': [
    Buffer.concat([opening(), frame(FrameType.Headers, 0, 1, requestFields('/ready'))]),
    frame(FrameType.Continuation, 0, 1, Buffer.alloc(0)),
  ],
  'sends no body': [
    Buffer.concat([opening(), frame(FrameType.Headers, FrameFlag.EndHeaders, 1, requestFields('/ready'))]),
    PING,
  ],
};

for (const [what, [first, more]] of Object.entries(IDLE)) {
  t.test(`a connection that ${what} is closed after a while, whatever else it sends`, async (t) => {
    const { port, stat } = await start(t, { idleMs: 200 });
    const connection = await connectRaw(t, port);
    connection.write(first);
    if (first === GET) await connection.readUntil('LIVE');
    // Only a few: many CONTINUATION frames are an attack of their own.
    const drip = setInterval(() => more && connection.write(more), 50);
    t.teardown(() => clearInterval(drip));
    await connection.readToEnd();
    await waitFor(() => stat('http.admin.downstream_cx_idle_timeout') === 1);
  });
}

t.test('a connection is not idle while it is answered', async (t) => {
  const { port } = await start(t, {
    idleMs: 50,
    handlers: streaming(async function* () {
      for (let piece = 0; piece < 10; piece++) {
        yield Buffer.from('x');
        await new Promise((resolve) => setTimeout(resolve, 20));
      }
    }),
  });
  t.equal((await httpRequest(port, '/stream')).body, 'x'.repeat(10));
});

t.test('a client that does not read its answer is evicted if no connection is idle', { timeout: 60_000 }, async (t) => {
  const { port, stat } = await start(t, {
    maxConnections: 3,
    handlers: streaming(function* () {
      for (;;) yield PIECE;
    }),
  });
  const ask = async () => {
    const connection = await connectRaw(t, port);
    connection.write('GET /stream HTTP/1.1\r\nHost: a\r\n\r\n');
    await connection.readUntil('200 OK');
    return connection;
  };
  const reading: RawConnection[] = [await ask(), await ask()];
  for (const connection of reading) connection.discard();
  const stalled = await ask();
  stalled.socket.pause();
  await t.rejects(httpRequest(port, '/ready'), 'it has not been stalled for long enough');
  await waitFor(() => httpRequest(port, '/ready').then(({ status }) => status === 200));
  t.equal(stat('listener.admin.downstream_cx_evicted'), 1);
  await waitFor(() => {
    stalled.discard();
    return stalled.closed !== 'open';
  });
  t.ok(reading.every(({ closed }) => closed === 'open'));
});

t.test('requests of one connection are answered one after the other, with HTTP/2 a few at a time', async (t) => {
  let running = 0;
  let maxRunning = 0;
  const slow: AdminHandler = {
    path: '/slow',
    mutates: false,
    help: '',
    parameters: [],
    async handle() {
      maxRunning = Math.max(maxRunning, ++running);
      await new Promise((resolve) => setTimeout(resolve, 5));
      running--;
      return { body: 'done' };
    },
  };
  const { port } = await start(t, { handlers: [...HANDLERS, slow] });
  const connection = await connectRaw(t, port);
  connection.write('GET /slow HTTP/1.1\r\nHost: a\r\n\r\n'.repeat(50));
  await waitFor(() => connection.received.split('done').length > 50);
  t.equal(maxRunning, 1);
  maxRunning = 0;
  const session = connectHttp2(`http://127.0.0.1:${port}`);
  t.teardown(() => session.destroy());
  const answers = Array.from({ length: 80 }, () => {
    const stream = session.request({ ':path': '/slow' }).resume();
    return new Promise((resolve) => stream.on('close', () => resolve(stream.rstCode)));
  });
  t.same(new Set(await Promise.all(answers)), new Set([0]));
  t.ok(maxRunning > 1 && maxRunning <= 8, `${maxRunning} at a time`);
});

t.test('a client that requests more than it reads is closed', async (t) => {
  captureLog(t);
  const { port } = await start(t, {
    handlers: streaming(function* () {
      for (;;) yield PIECE;
    }),
  });
  const paths = { many: '/stream', long: `/stream?${'x'.repeat(50_000)}` };
  for (const [what, path] of Object.entries(paths)) {
    const connection = await connectRaw(t, port);
    connection.discard();
    connection.write(`GET ${path} HTTP/1.1\r\nHost: a\r\n\r\n`.repeat(what === 'many' ? 300 : 20));
    await connection.readToEnd();
  }
  const http2 = await connectRaw(t, port);
  const requests = Array.from({ length: 20 }, (_, index) => request(2 * index + 1, paths.long.slice(0, 16_000)));
  http2.write(Buffer.concat([opening(), ...requests, ...requests]));
  await http2.readToEnd();
  t.equal((await httpRequest(port, '/ready')).status, 200);
});

/** Returns the sockets that servers of this process accept from now on. */
function acceptedSockets(t: Test): readonly Socket[] {
  const sockets: Socket[] = [];
  const collect = (message: unknown) => sockets.push((message as { socket: Socket }).socket);
  subscribe('net.server.socket', collect);
  t.teardown(() => unsubscribe('net.server.socket', collect));
  return sockets;
}

t.test('the bodies of all requests together have a limit', async (t) => {
  captureLog(t);
  const { port } = await start(t, {});
  const body = Buffer.alloc(1024 * 1024 - 1, 'x');
  const head = `POST /logging HTTP/1.1\r\nHost: a\r\nContent-Length: ${body.length + 1}\r\n\r\n`;
  const accepted = acceptedSockets(t);
  const connections = await Promise.all(Array.from({ length: 30 }, () => connectRaw(t, port)));
  for (const connection of connections) {
    connection.write(head);
    connection.write(body);
  }
  // The first answer makes room for bodies that are not read yet.
  await waitFor(() => accepted.every(({ bytesRead }) => bytesRead === head.length + body.length));
  const statuses: string[] = [];
  for (const connection of connections) {
    connection.write('x');
    statuses.push((await connection.readUntil(/HTTP\/1.1 \d+/)).slice(-3));
  }
  t.equal(statuses.filter((status) => status !== '503').length, 16);
  t.not(
    (await httpRequest(port, '/logging', { method: 'POST', body: 'level=info' })).status,
    503,
    'there is room again',
  );
});
