// HTTP/2 sessions of clients that disconnect leave nothing behind.

import { AsyncLocalStorage } from 'node:async_hooks';
import { createServer as createHttp2Server, type Http2Session } from 'node:http2';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import t from 'tap';
import { endBetweenSegments } from '../../src/io/session-end.js';
import { endWhenStopped } from '../../src/io/stopped-sessions.js';
import { FrameFlag, FrameType, frame, opening, request, uint32 } from '../e2e/harness/http2-frames.js';
import { connectRaw, waitFor } from '../e2e/harness/index.js';

setFlagsFromString('--expose-gc');
const collect = runInNewContext('gc') as () => void;

const SESSIONS = 50;
const goAway = (code: number) => frame(FrameType.GoAway, 0, 0, Buffer.concat([uint32(0), uint32(code)]));

for (const [what, frames] of Object.entries({
  'goes away with an error': [goAway(2)],
  'goes away during requests': [
    request(1, '/'),
    goAway(0),
    request(3, '/'),
    frame(FrameType.Ping, 0, 0, Buffer.alloc(7)),
  ],
  'breaks the protocol': [frame(FrameType.WindowUpdate, 0, 7, uint32(5))],
  'acknowledges settings': [frame(FrameType.Settings, FrameFlag.Ack, 0), goAway(2)],
})) {
  t.test(`the session of a client that ${what} is freed`, async (t) => {
    const sessions: WeakRef<Http2Session>[] = [];
    let closed = 0;
    const sessionServer = createHttp2Server((_request, response) => response.end());
    sessionServer.on('session', (session) => {
      endBetweenSegments(session);
      endWhenStopped(session, 20);
      sessions.push(new WeakRef(session));
      session.on('error', () => {});
      session.on('close', () => closed++);
    });
    // As in the admin interface: the first bytes were read, and their effects are in a fault domain.
    const domains = new AsyncLocalStorage<Socket>();
    const server = createServer((socket) => {
      socket.once('readable', () => {
        socket.unshift(socket.read());
        domains.run(socket, () => sessionServer.emit('connection', socket));
      });
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    t.teardown(() => new Promise((resolve) => server.close(resolve)));
    const { port } = server.address() as AddressInfo;
    for (let count = 0; count < SESSIONS; count++) {
      const client = await connectRaw(t, port);
      client.write(Buffer.concat([opening(), ...frames]));
      client.end();
    }
    await waitFor(() => closed === SESSIONS);
    const left = () => {
      collect();
      return sessions.filter((each) => each.deref() !== undefined).length;
    };
    // The last sessions may still be referenced by the last callbacks.
    await waitFor(() => left() <= 2, { what: 'sessions to be freed', deadlineMs: 10_000 });
  });
}
