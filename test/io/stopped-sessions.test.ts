// Sessions that have stopped on their own are destroyed; those with a slow peer are not.

import { type ClientHttp2Session, connect, createServer } from 'node:http2';
import type { AddressInfo, Socket } from 'node:net';
import t from 'tap';
import { endWhenStopped } from '../../src/io/stopped-sessions.js';
import { startTcpUpstream, type Teardown, waitFor } from '../e2e/harness/index.js';

const LOOK_MS = 10;
const SETTINGS = Buffer.from('000000040000000000', 'hex');

t.test('a session whose peer sent invalid HTTP/2 is destroyed, whether the connection ends or not', async (t) => {
  for (const ends of [true, false]) {
    const server = await startTcpUpstream(t, (socket) => {
      socket.write(SETTINGS);
      socket.once('data', () => {
        socket.write(Buffer.alloc(21, 255));
        if (ends) socket.end();
      });
    });
    const session = open(t, server.port);
    await new Promise((resolve) => session.once('close', resolve));
    t.ok(session.destroyed);
  }
});

t.test('a session that stops while it waits for a response is destroyed', async (t) => {
  const server = await startTcpUpstream(t, (socket) => {
    // A frame header without its last byte.
    socket.write(Buffer.concat([SETTINGS, Buffer.alloc(8, 255)]));
    let settings = 0;
    socket.on('data', (bytes) => {
      // The first are those of the preface.
      if (bytes.includes(SETTINGS) && ++settings === 2) socket.write('x');
    });
  });
  const session = open(t, server.port);
  await new Promise((resolve) => session.once('close', resolve));
  t.ok(session.destroyed);
});

t.test('a session whose peer acknowledges, and sends nothing else, continues', async (t) => {
  let settings = 0;
  const server = createServer();
  server.on('session', (session) => session.on('remoteSettings', () => settings++));
  t.teardown(() => server.close());
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const session = open(t, (server.address() as AddressInfo).port);
  await waitFor(() => settings >= 4, { what: 'four settings' });
  t.notOk(session.destroyed);
});

t.test('a session whose peer neither answers nor reads continues', async (t) => {
  for (const takes of [true, false]) {
    const peers: Socket[] = [];
    const server = await startTcpUpstream(t, (socket) => {
      peers.push(socket);
      // It allows streams to send any amount.
      socket.write(Buffer.from('00000604000000000000047fffffff0000040800000000007fff0000', 'hex'));
      if (takes) socket.resume();
      else socket.pause();
    });
    const session = open(t, server.port);
    let looks = 0;
    const { settings } = session;
    session.settings = (...args) => {
      looks++;
      settings.apply(session, args);
    };
    const state = Object.getOwnPropertyDescriptor(Object.getPrototypeOf(Object.getPrototypeOf(session)), 'state')!;
    Object.defineProperty(session, 'state', {
      get: () => {
        looks++;
        return state.get!.call(session) as object;
      },
    });
    const stream = session.request({ ':method': 'POST' });
    stream.on('error', () => {});
    stream.write(Buffer.alloc(20_000_000));
    await waitFor(() => looks >= 20, { what: 'twenty checks' });
    t.notOk(session.destroyed, takes ? 'it answers nothing' : 'it takes nothing');
  }
});

function open(t: Teardown, port: number): ClientHttp2Session {
  const session = connect(`http://127.0.0.1:${port}`);
  t.teardown(() => session.destroy());
  session.on('error', () => {});
  session.once('connect', () => endWhenStopped(session, LOOK_MS));
  return session;
}
