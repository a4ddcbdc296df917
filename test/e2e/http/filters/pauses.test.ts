// A filter that pauses a request: its body is not read until every filter that paused it resumes it.

import t, { type Test } from 'tap';
import type { RawConnection } from '../../harness/index.js';
import { dechunk, parseMessage } from '../message.js';
import { response } from '../raw-upstream.js';
import { type RequestLine, type ScriptedRequest, startScriptedProxy } from './scripted-proxy.js';

const proxy = await startScriptedProxy(t);
t.afterEach(() => proxy.settle());

const BODY = '3\r\none\r\n3\r\ntwo\r\n0\r\n\r\n';
const POST: RequestLine = { method: 'POST', headers: 'transfer-encoding: chunked\r\n', body: BODY };

t.test('the body of a paused request is not read', async (t) => {
  const request = await proxy.send({ a: { decodeHeaders: 'pause', decodeData: '' } }, POST);
  const host = await proxy.host(request);
  await request.perform('a', 'held');
  t.same(await request.events(), ['a decodeHeaders /', 'a held 0 0']);
  await request.perform('a', 'resume');
  await host.readUntil(BODY);
  host.write(response(200, 'fine', { connection: 'close' }));
  t.match(await request.answer(), { rest: 'fine' });
  // As in Envoy, where a filter that waits holds the body without a pause.
  t.equal(await proxy.baton.stat('http.main.downstream_flow_control_paused_reading_total'), 0);
  t.equal(await proxy.baton.stat('http.main.downstream_flow_control_resumed_reading_total'), 0);
});

t.test('the body is not read until all filters that paused it resume', async (t) => {
  const request = await proxy.send(
    { a: { decodeHeaders: 'pause', decodeData: '' }, b: { decodeHeaders: 'pause' } },
    POST,
  );
  await request.sees('b decodeHeaders /');
  await request.perform('a', 'resume resume');
  await request.perform('a', 'held');
  t.same(await request.events(), ['a decodeHeaders /', 'b decodeHeaders /', 'a held 0 0']);
  await request.perform('b', 'resume');
  await isForwarded(t, request);
});

t.test('data held by a filter stays ahead of data that arrives after another filter resumes', async (t) => {
  const request = await proxy.send(
    {
      a: { decodeHeaders: 'pause', decodeData: ['pause buffer', 'continue'] },
      b: { decodeData: ['resume', 'continue'] },
    },
    POST,
  );
  await request.sees('a decodeHeaders /');
  await request.perform('a', 'resume');
  await request.sees("a decodeData 'one'");
  await request.perform('b', 'pause');
  await request.perform('a', 'resume continueDecoding');
  await isForwarded(t, request);
});

t.test('a local reply ends a paused request', async (t) => {
  const request = await proxy.send({ a: { decodeHeaders: 'pause stop' } }, { ...POST, body: '3\r\none\r\n' });
  await request.sees('a decodeHeaders /');
  await request.perform('a', 'reply:403');
  const { text } = await request.client.readToEnd();
  t.match(parseMessage(text), { status: 403, headers: { connection: 'close' } });
});

t.test('a local reply to a paused request that has arrived whole keeps the connection', async (t) => {
  const request = await proxy.send({ a: { decodeHeaders: 'pause stop' } }, POST);
  await request.sees('a decodeHeaders /');
  await request.perform('a', 'reply:403');
  const text = await request.client.readUntil('reply of a');
  t.match(parseMessage(text), { status: 403, headers: { connection: undefined } });
  await isForwarded(t, await proxy.send({}, { ...POST, on: request.client }));
});

t.test('a pause ends with its request', async (t) => {
  const first = await proxy.send({ a: { decodeHeaders: 'pause' } });
  const second = await proxy.send({}, { ...POST, on: first.client });
  const host = await proxy.host(first);
  host.write(response(200, 'fine', { connection: 'close' }));
  await first.answer();
  await isForwarded(t, second);
});

for (const [what, line, how] of [
  ['resets its connection', POST, 'reset'],
  ['resets its connection after a request without a body', {}, 'reset'],
  ['ends its connection after a request without a body', {}, 'end'],
] as const) {
  t.test(`a client that ${what} while it is paused is detected`, async (t) => {
    const request = await proxy.send({ a: { decodeHeaders: 'pause stop' } }, line);
    await request.sees(`a decodeHeaders /${line === POST ? '' : ' end'}`);
    request.client[how]();
    await request.sees('a onDestroy');
    t.match(await proxy.logged(request), /^0 downstream_remote_disconnect DC /);
  });
}

t.test('a host is paused when its client stopped reading before the request was sent', async (t) => {
  const small = await startScriptedProxy(t, { listener: { per_connection_buffer_limit_bytes: 65_536 } });
  const paused = 'cluster.host.upstream_flow_control_paused_reading_total';
  const on = await small.connect();
  on.socket.pause();
  let host: RawConnection;
  // Fills the sockets on the way, so that a held request finds a blocked client when it continues.
  for (let answers = 1; ; answers++) {
    // In one write, so that the second request starts before the first response is found to be too large.
    on.socket.cork();
    await small.send({ b: { decodeHeaders: 'reply:200:900000' } }, { on });
    const held = await small.send({ b: { decodeHeaders: 'stop' } }, { on });
    on.socket.uncork();
    await held.sees('b decodeHeaders / end');
    await held.perform('b', 'continueDecoding');
    host = await small.host(held);
    if ((await small.baton.stat(paused))! > 0) {
      t.pass(`after ${answers} responses`);
      break;
    }
    host.write(response(204));
  }
  const body = `${'y'.repeat(900_000)}the end`;
  host.write(response(200, body));
  on.socket.resume();
  t.ok(
    (await on.readUntil('the end')).endsWith(`\r\n\r\n${body}`),
    'everything arrives when the client resumes reading',
  );
  await small.settle();
});

/** Checks that the host gets the whole request, and the client its response. */
async function isForwarded(t: Test, request: ScriptedRequest): Promise<void> {
  const host = await proxy.host(request);
  const { rest } = parseMessage(await host.readUntil(/\n0\r\n\r\n/));
  t.equal(dechunk(rest).body, 'onetwo');
  host.write(response(200, 'fine', { connection: 'close' }));
  t.match(await request.answer(), { rest: 'fine' });
}
