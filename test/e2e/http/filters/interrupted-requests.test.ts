// Requests that end while a filter holds a part of them: their filters are destroyed once, their host is released, and no
// memory leaks.

import t from 'tap';
import type { RawConnection } from '../../harness/index.js';
import { response } from '../raw-upstream.js';
import type { Script } from './scripted-filter.js';
import { startScriptedProxy, WATCH } from './scripted-proxy.js';

const proxy = await startScriptedProxy(t);
t.afterEach(() => proxy.settle());

const CHUNKED = 'transfer-encoding: chunked\r\n';
const BODY = '3\r\none\r\n3\r\ntwo\r\n0\r\nx-sum: 6\r\n\r\n';
const ROUNDS = 50;

/** What a filter holds when the client disconnects, and the event that shows it. */
const HELD: Record<string, { script: Script; event: string; isAtHost?: boolean; code?: number }> = {
  'the request header section': { script: { decodeHeaders: 'stop' }, event: 'b decodeHeaders /' },
  'the request body': { script: { decodeHeaders: '', decodeData: 'buffer' }, event: "b decodeData 'one'" },
  'the whole request': { script: { decodeHeaders: 'stop', decodeData: 'buffer' }, event: "b decodeData 'one'" },
  'the request trailers': { script: { decodeTrailers: 'stop' }, event: 'b decodeTrailers', isAtHost: true },
  'the response header section': { script: { encodeHeaders: 'stop' }, event: 'b encodeHeaders 200', isAtHost: true },
  'the whole response': {
    script: { encodeHeaders: 'stop', encodeData: 'buffer' },
    event: "b encodeData 'one'",
    isAtHost: true,
  },
  'the response body after a forwarded header section': {
    script: { encodeData: 'buffer' },
    event: "b encodeData 'one'",
    isAtHost: true,
    code: 200,
  },
  'the response trailers': { script: { encodeTrailers: 'stop' }, event: 'b encodeTrailers', isAtHost: true, code: 200 },
  'a local reply': {
    script: { decodeTrailers: 'reply:403 stop', encodeHeaders: 'stop' },
    event: 'a encodeHeaders 403',
  },
};
for (const [what, { script, event, isAtHost = false, code = 0 }] of Object.entries(HELD)) {
  for (const how of ['reset', 'end'] as const) {
    t.test(`a client disconnects (${how}) while a filter holds ${what}`, async (t) => {
      const isAnswer = event.startsWith('a ');
      const a = isAnswer ? { ...WATCH, encodeHeaders: 'stop', encodeData: 'buffer' } : WATCH;
      const b = isAnswer ? { decodeHeaders: 'stop', decodeTrailers: 'reply:403 stop' } : script;
      const request = await proxy.send({ a, b, c: WATCH }, { method: 'POST', headers: CHUNKED, body: BODY });
      if (isAtHost) {
        const host = await proxy.host(request);
        if (event.includes('encode')) host.write(`HTTP/1.1 200 OK\r\n${CHUNKED}\r\n${BODY}`);
      }
      await request.sees(event);
      request.client[how]();
      await request.sees('c onDestroy');
      await proxy.isQuiet();
      const ends = (await request.events()).filter((each) => each.endsWith('onDestroy'));
      t.same(ends, ['a onDestroy', 'b onDestroy', 'c onDestroy']);
      t.match(await proxy.logged(request), new RegExp(`^${code} downstream_remote_disconnect DC [036] `));
      if (isAtHost) {
        const host = await proxy.host(request);
        if (!event.includes('encode')) t.not((await host.readToEnd()).closed, 'open', 'its host is released');
      }
      await request.perform('b', 'continueDecoding continueEncoding reply:500');
    });
  }
}

/** Ways in which an exchange breaks in the middle of a body, while filters hold nothing. */
const BREAKS: [
  what: string,
  act: (client: RawConnection, host: RawConnection) => void,
  isUpload: boolean,
  logged: string,
][] = [
  ['a client resets during its request', (client) => client.reset(), true, '0 downstream_remote_disconnect DC 3 0'],
  ['a client ends during its request', (client) => client.end(), true, '0 downstream_remote_disconnect DC 3 0'],
  ['a client resets during its response', (client) => client.reset(), false, '200 downstream_remote_disconnect DC 0 3'],
  ['a client ends during its response', (client) => client.end(), false, '200 downstream_remote_disconnect DC 0 3'],
  [
    'a client sends garbage during its request',
    (client) => client.write('nonsense\r\n'),
    true,
    '400 http1.codec_error DPE 3 11',
  ],
  [
    'a host resets during its request',
    (_, host) => host.reset(),
    true,
    '503 upstream_reset_before_response_started{connection_termination} UC 3 95',
  ],
  [
    'a host ends during its request',
    (_, host) => host.end(),
    true,
    '503 upstream_reset_before_response_started{connection_termination} UC 3 95',
  ],
  [
    'a host resets during its response',
    (_, host) => host.reset(),
    false,
    '200 upstream_reset_after_response_started{protocol_error} UPE 0 3',
  ],
  [
    'a host ends during its response',
    (_, host) => host.end(),
    false,
    '200 upstream_reset_after_response_started{protocol_error} UPE 0 3',
  ],
  [
    'a host sends garbage during its response',
    (_, host) => host.write('nonsense\r\n'),
    false,
    '200 upstream_reset_after_response_started{protocol_error} UPE 0 3',
  ],
];
for (const [what, act, isUpload, line] of BREAKS) {
  t.test(`${what}: filters are destroyed once, and see nothing afterwards`, async (t) => {
    const upload = { method: 'POST', headers: CHUNKED, body: '3\r\none\r\n' };
    const request = await proxy.send({ a: WATCH, b: WATCH, c: WATCH }, isUpload ? upload : {});
    const host = await proxy.host(request);
    if (isUpload) await host.readUntil('one\r\n');
    else {
      host.write(`HTTP/1.1 200 OK\r\n${CHUNKED}\r\n3\r\none\r\n`);
      await request.client.readUntil('one\r\n');
    }
    act(request.client, host);
    t.equal(await proxy.logged(request), line);
    await proxy.isQuiet();
    const events = await request.events();
    t.same(events.slice(-3), ['a onDestroy', 'b onDestroy', 'c onDestroy']);
    t.equal(events.filter((event) => event.endsWith('onDestroy')).length, 3);
  });
}

t.test('requests pipelined after a held one wait for it', async (t) => {
  const first = await proxy.send({ b: { decodeHeaders: 'stop' } });
  const second = await proxy.send({ b: { decodeHeaders: 'reply:202' } }, { on: first.client });
  const third = await proxy.send({ b: { encodeHeaders: 'stop' } }, { on: first.client });
  await first.sees('b decodeHeaders / end');
  t.same(await second.events(), []);
  await first.perform('b', 'continueDecoding');
  (await proxy.host(first)).write(response(200, 'first', { connection: 'close' }));
  t.match(await first.answer(), { status: 200, rest: 'first' });
  t.match(await second.answer(), { status: 202, rest: 'reply of b' });
  (await proxy.host(third)).write(response(203, 'third', { connection: 'close' }));
  await third.sees('b encodeHeaders 203');
  await third.perform('b', 'soon:continueEncoding');
  t.match(await third.answer(), { status: 203, rest: 'third' });
  t.equal(await proxy.logged(first), '200 via_upstream - 0 5');
  t.equal(await proxy.logged(first), '202 scripted - 0 10');
  t.equal(await proxy.logged(first), '203 via_upstream - 0 5');
});

t.test('a client that disconnects also cancels the requests after the held one', async (t) => {
  const first = await proxy.send({ b: { decodeHeaders: 'stop' } });
  const second = await proxy.send({ b: { decodeHeaders: 'reply:202' } }, { on: first.client });
  await first.sees('b decodeHeaders / end');
  first.client.reset();
  await first.sees('b onDestroy');
  t.same(await second.events(), [], 'they never start');
});

t.test('a held request is limited by the stream idle timeout', async (t) => {
  const impatient = await startScriptedProxy(t, { manager: { stream_idle_timeout: '0.3s' } });
  for (const [scripts, line, status, details] of [
    [{ b: { decodeHeaders: 'stop' } }, {}, 504, 'stream_idle_timeout SI 0'],
    [{ b: { decodeHeaders: 'stop' } }, { method: 'POST', headers: CHUNKED }, 408, 'stream_idle_timeout SI 0'],
    [
      { b: { decodeHeaders: 'pause stop' } },
      { method: 'POST', headers: CHUNKED, body: BODY },
      408,
      // What has arrived is read before the reply.
      'stream_idle_timeout SI 6',
    ],
  ] as const) {
    const request = await impatient.send(scripts, line);
    t.match(await request.answer(), { status, rest: 'stream timeout' });
    t.equal(await impatient.logged(request), `${status} ${details} 14`);
  }
  const request = await impatient.send({ b: { encodeHeaders: 'stop', encodeData: 'buffer' } });
  (await impatient.host(request)).write(response(200, 'never seen'));
  t.match(await request.answer(), { status: 504, rest: 'stream timeout' }, 'a held response is limited too');
  await impatient.settle();
});

t.test('a response that has arrived is not late because a filter holds it', async (t) => {
  const impatient = await startScriptedProxy(t, { route: { timeout: '2s' } });
  const request = await impatient.send({
    b: { encodeHeaders: 'stop', encodeData: ['in:2600:continueEncoding buffer'] },
  });
  (await impatient.host(request)).write(response(200, 'fine', { connection: 'close' }));
  t.match(await request.answer(), { status: 200, rest: 'fine' });
  t.equal(await impatient.logged(request), '200 via_upstream - 0 4');
  t.equal(await impatient.baton.stat('cluster.host.upstream_rq_timeout'), 0);
  await impatient.settle();
});

t.test(
  'a host that answers before the request is complete serves other requests while a filter holds the response',
  async (t) => {
    const early = await proxy.send(
      { b: { encodeHeaders: 'stop' } },
      { method: 'POST', headers: CHUNKED, body: '3\r\none\r\n' },
    );
    const host = await proxy.host(early);
    await host.readUntil('one\r\n');
    host.write(response(200, 'early'));
    await early.sees('b encodeHeaders 200');
    early.client.write('0\r\n\r\n');
    await host.readUntil('0\r\n\r\n');
    await proxy.baton.waitForStat('cluster.host.upstream_rq_active', 0);
    // Its connection is free.
    const next = await proxy.send({});
    await host.readUntil(`x-id: ${next.id}\r\n`);
    await early.perform('b', 'continueEncoding');
    t.match(await early.answer(), { status: 200, rest: 'early' });
    host.write(response(200, 'next'));
    t.match(await next.answer(), { status: 200, rest: 'next' });
  },
);

t.test('while a filter holds an early response, the host may close without the rest of the request', async (t) => {
  const post = { method: 'POST', headers: CHUNKED, body: '3\r\none\r\n' };
  const early = await proxy.send({ b: { encodeHeaders: 'stop' } }, post);
  const host = await proxy.host(early);
  host.write(response(200, 'early'));
  await early.sees('b encodeHeaders 200');
  host.reset();
  await proxy.baton.waitForStat('cluster.host.upstream_cx_active', 0);
  await early.perform('b', 'continueEncoding');
  t.match(await early.answer(), { status: 200, rest: 'early', headers: { connection: 'close' } });
});

t.test('many rounds retain no more memory than one', async (t) => {
  const hold = { decodeHeaders: 'stop', decodeData: 'buffer', decodeTrailers: 'soon:continueDecoding stop' };
  const encode = { encodeHeaders: 'stop', encodeData: 'buffer', encodeTrailers: 'soon:continueEncoding stop' };
  const post = { method: 'POST', headers: CHUNKED, body: BODY };
  for (let round = 0; round < ROUNDS; round++) {
    const request = await proxy.send({ a: { ...hold, ...encode }, b: hold, c: encode }, post);
    const host = await proxy.host(request);
    host.write(`HTTP/1.1 200 OK\r\nconnection: close\r\n${CHUNKED}\r\n${BODY}`);
    await request.client.readUntil('x-sum: 6\r\n\r\n');
    const left = await proxy.send({ a: { ...hold, decodeTrailers: 'stop' } }, { ...post, on: request.client });
    await left.sees('a decodeTrailers');
    request.client.reset();
    await left.sees('a onDestroy');
  }
  await proxy.isQuiet();
  t.equal(proxy.faults, 0);
});

t.test('no exception was logged', async (t) => {
  t.equal(proxy.faults, 0, proxy.baton.stderr);
});
