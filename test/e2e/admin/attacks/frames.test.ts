// Clients of the admin port that violate HTTP/2: their connections fail, and nothing else does.

import { readdirSync } from 'node:fs';
import t from 'tap';
import { startControlPlane } from '../../harness/control-plane.js';
import { FrameFlag, FrameType, frame, opening, requestFields, reset, uint32 } from '../../harness/http2-frames.js';
import { type BatonProcess, bootstrap, connectRaw, httpRequest, startBaton, waitFor } from '../../harness/index.js';

const { Headers, Data, Settings, Ping, WindowUpdate, Continuation, GoAway, Priority, PushPromise } = FrameType;
const { EndHeaders, EndStream, Padded } = FrameFlag;

const expecting = { ':method': 'POST', expect: '100-continue' };
const head = (stream: number, flags: number, more?: Record<string, string>) =>
  frame(Headers, flags, stream, requestFields('/ready', more));

/** Each entry is sent in one segment. */
const ATTACKS: Record<string, readonly Buffer[]> = {
  'an expectation that is reset at once': [head(1, EndHeaders, expecting), reset(1)],
  'an expectation without a body that is reset at once': [head(1, EndHeaders | EndStream, expecting), reset(1)],
  'another expectation that is reset at once': [head(1, EndHeaders, { expect: 'miracles' }), reset(1)],
  'an expectation on a connection that goes away': [
    head(1, EndHeaders, expecting),
    frame(GoAway, 0, 0, Buffer.alloc(8)),
  ],
  'an expectation before garbage': [head(1, EndHeaders, expecting), Buffer.from('garbage garbage garbage')],
  'a CONNECT that is reset at once': [head(1, EndHeaders, { ':method': 'CONNECT' }), reset(1)],
  'an extended CONNECT': [head(1, EndHeaders, { ':method': 'CONNECT', ':protocol': 'websocket' }), reset(1)],
  'an upgrade': [head(1, EndHeaders | EndStream, { connection: 'upgrade', upgrade: 'h2c' })],
  'a request that is reset in the middle of its body': [
    head(1, EndHeaders),
    frame(Data, 0, 1, Buffer.alloc(100)),
    reset(1),
  ],
  'data for no stream': [frame(Data, EndStream, 5, Buffer.alloc(10))],
  'data of stream 0': [frame(Data, 0, 0, Buffer.alloc(10))],
  'fields with an invalid compression': [frame(Headers, EndHeaders | EndStream, 1, Buffer.alloc(50, 0xff))],
  'a head that is interrupted': [frame(Headers, 0, 1, requestFields('/ready')), frame(Ping, 0, 0, Buffer.alloc(8))],
  'a continuation of nothing': [frame(Continuation, EndHeaders, 1, requestFields('/ready'))],
  'an even stream': [head(2, EndHeaders | EndStream)],
  'a stream id that decreases': [head(7, EndHeaders | EndStream), head(3, EndHeaders | EndStream)],
  'padding longer than its frame': [frame(Headers, EndHeaders | Padded, 1, Buffer.from([200, 1, 2]))],
  'a PUSH_PROMISE of a client': [
    frame(PushPromise, EndHeaders, 1, Buffer.concat([uint32(2), requestFields('/ready')])),
  ],
  'a window that overflows': [
    frame(WindowUpdate, 0, 0, uint32(0x7fffffff)),
    frame(WindowUpdate, 0, 0, uint32(0x7fffffff)),
  ],
  'a window update of 0': [frame(WindowUpdate, 0, 0, uint32(0))],
  'settings of the wrong size': [frame(Settings, 0, 0, Buffer.alloc(5))],
  'settings of a stream': [frame(Settings, 0, 1, Buffer.alloc(6))],
  'a stream that depends on itself': [frame(Priority, 0, 1, Buffer.concat([uint32(1), Buffer.from([1])])), reset(1)],
  // nghttp2 continued to read after a GOAWAY had ended the session, and asserted that nothing malformed followed.
  'a malformed PING after a GOAWAY and a request': [
    frame(GoAway, 0, 0, Buffer.alloc(8)),
    head(1, EndHeaders | EndStream),
    frame(Ping, 0, 0, Buffer.alloc(7)),
  ],
  'a malformed PING after a GOAWAY with an error': [
    frame(GoAway, 0, 0, Buffer.concat([uint32(0), uint32(14)])),
    head(1, EndHeaders | EndStream),
    frame(Ping, 0, 0, Buffer.alloc(7)),
  ],
  // Node reset them while nghttp2 still held their streams.
  'requests after a GOAWAY': [
    head(1, EndHeaders),
    frame(GoAway, 0, 0, Buffer.alloc(8)),
    ...Array.from({ length: 90 }, (_, index) => head(2 * index + 3, EndHeaders | (index % 2))),
  ],
  'a malformed PING after thousands of resets': [
    ...Array.from({ length: 300 }, (_, index) => [
      head(2 * index + 1, EndHeaders | EndStream),
      reset(2 * index + 1),
    ]).flat(),
    frame(Ping, 0, 0, Buffer.alloc(7)),
  ],
  'a frame that is too long': [frame(Data, 0, 1, Buffer.alloc(20_000))],
};

t.test('no attack ends the process or leaks a descriptor', async (t) => {
  const baton = await startBaton(t, { config: bootstrap({ listeners: [], clusters: [] }) });
  await attackWithAll(baton);
  const before = descriptors(baton);
  // A second round, because the first of each kind may allocate descriptors that stay.
  await attackWithAll(baton);
  await waitFor(() => descriptors(baton) <= before, { what: 'all descriptors to be free', deadlineMs: 10_000 });
  t.equal((await baton.admin('/ready')).status, 200);
  t.equal(await baton.stat('server.envoy_bug_failures'), 0, 'no unexpected exception');
  await baton.stop();
});

t.test('a server that is not live yet survives the attacks too', async (t) => {
  const plane = await startControlPlane(t);
  const baton = await startBaton(t, {
    config: bootstrap({ listeners: [], clusters: [plane.cluster()], extra: plane.ads() }),
    wait: 'admin',
  });
  await attackWithAll(baton);
  t.match(await baton.admin('/ready'), { status: 503, body: 'INITIALIZING\n' });
  plane.set('cluster', []);
  plane.set('listener', []);
  await waitFor(async () => (await baton.admin('/ready')).status === 200);
  await baton.stop();
});

t.test(
  'connections that violated the protocol release their descriptors at once, even if their clients stay',
  async (t) => {
    const baton = await startBaton(t, { config: bootstrap({ listeners: [], clusters: [] }) });
    t.equal((await baton.admin('/ready')).status, 200);
    const before = descriptors(baton);
    const connections = await Promise.all(Array.from({ length: 100 }, () => connectRaw(t, baton.adminPort)));
    // Node 20 stops reading then, and does not even notice that the client closes.
    for (const connection of connections)
      connection.write(Buffer.concat([opening(), frame(Data, 0, 0, Buffer.alloc(10))]));
    for (const connection of connections.slice(50)) connection.end();
    await waitFor(() => descriptors(baton) <= before, { what: 'all descriptors to be free', deadlineMs: 10_000 });
    t.equal((await baton.stats('http.admin.')).downstream_cx_protocol_error, 100);
    await baton.stop();
  },
);

async function attackWithAll(baton: BatonProcess): Promise<void> {
  for (const frames of Object.values(ATTACKS)) {
    const connection = await connectRaw(t, baton.adminPort);
    connection.write(Buffer.concat([opening(), ...frames]));
    // Everything sent before this request has been handled when it is answered.
    await httpRequest(baton.adminPort, '/ready');
    connection.destroy();
  }
}

function descriptors({ pid }: BatonProcess): number {
  return readdirSync(`/proc/${pid}/fd`).length;
}
