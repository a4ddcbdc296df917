// A filter whose timer or call completes after its request does nothing: the stream serves another request by then, which must
// not be affected.

import t, { type Test } from 'tap';
import { response } from '../raw-upstream.js';
import { changes, type ScriptedRequest, startScriptedProxy } from './scripted-proxy.js';

const proxy = await startScriptedProxy(t);
t.afterEach(() => proxy.settle());

/** Everything that a filter can do with its stream. */
const WORDS = [
  'reply:418',
  'run:throw',
  'continueDecoding',
  'continueEncoding',
  'pause',
  'resume',
  'limit:1',
  'putRequest:x',
  'putResponse:x',
  'held',
  'code',
  'mark',
  'missing',
  'reroute',
];

for (const word of WORDS) {
  t.test(`a late ${word} has no effect`, async (t) => {
    const gone = await proxy.send({ b: { decodeHeaders: '' } });
    (await proxy.host(gone)).write(response(200, 'first', { connection: 'close' }));
    t.match(await gone.answer(), { status: 200, rest: 'first' });
    await gone.sees('b onDestroy');
    await hasNoEffect(t, gone, `soon:${word}`, `b timer ${word}`);
  });
}

t.test('a timer of a finished request sends no reply', async (t) => {
  const gone = await proxy.send({ b: { decodeHeaders: 'in:300:reply:418' } });
  (await proxy.host(gone)).write(response(200, 'first', { connection: 'close' }));
  await gone.answer();
  await hasNoEffect(t, gone, 'held', 'b timer reply:418');
});

t.test('a timer of a request whose client has disconnected sends no reply', async (t) => {
  const gone = await proxy.send({ b: { decodeHeaders: 'in:300:reply:418 stop' } });
  await gone.sees('b decodeHeaders / end');
  gone.client.reset();
  await gone.sees('b onDestroy');
  await hasNoEffect(t, gone, 'held', 'b timer reply:418');
});

t.test('changes to the request headers of a disconnected client affect no other request', async (t) => {
  const gone = await proxy.send({ b: { decodeHeaders: 'stop' } });
  await gone.sees('b decodeHeaders / end');
  gone.client.reset();
  await gone.sees('b onDestroy');
  // More than there are pooled header blocks.
  const others: ScriptedRequest[] = [];
  for (let i = 0; i < 8; i++) {
    const other = await proxy.send({ a: { decodeHeaders: 'stop' } });
    await other.sees('a decodeHeaders / end');
    others.push(other);
  }
  await gone.perform('b', 'add:x-late:1');
  for (const other of others) {
    await other.perform('a', 'continueDecoding');
    const host = await proxy.host(other);
    t.notMatch(await host.readUntil('\r\n\r\n'), 'x-late');
    host.write(response(200, 'mine', { connection: 'close' }));
    t.match(await other.answer(), { status: 200, rest: 'mine' });
  }
});

t.test('changes to the response headers of a disconnected client affect no other response', async (t) => {
  const held = async () => {
    const request = await proxy.send({ b: { encodeHeaders: 'stop' } });
    (await proxy.host(request)).write(response(200, 'mine', { connection: 'close' }));
    await request.sees('b encodeHeaders 200');
    return request;
  };
  const gone = await held();
  gone.client.reset();
  await gone.sees('b onDestroy');
  const others: ScriptedRequest[] = [];
  for (let i = 0; i < 8; i++) others.push(await held());
  await gone.perform('b', 'add:x-late:1');
  for (const other of others) {
    await other.perform('b', 'continueEncoding');
    const { headers, rest } = await other.answer();
    t.equal(rest, 'mine');
    t.equal(headers['x-late'], undefined);
  }
});

t.test('when its request ends a filter can still read it, but no longer act on it', async (t) => {
  const script = { decodeHeaders: '', onDestroy: 'code reply:418 continueDecoding continueEncoding pause resume' };
  const request = await proxy.send({ b: script });
  (await proxy.host(request)).write(response(201, 'first', { connection: 'close' }));
  t.match(await request.answer(), { status: 201, rest: 'first' });
  t.same(await request.events(), ['b decodeHeaders / end', 'b onDestroy', 'b code 201']);
  t.equal(await proxy.logged(request), '201 via_upstream - 0 5');
});

t.test('no exception was logged', async (t) => {
  t.equal(proxy.faults, 0, proxy.baton.stderr);
});

/** Has a filter of a finished request act while another request is in progress, in all of that request's states. */
async function hasNoEffect(t: Test, gone: ScriptedRequest, words: string, event: string): Promise<void> {
  const before = await proxy.counters();
  // The only stream serves it. Its filters hold and pause it; its body stays with the client.
  const script = { decodeHeaders: 'pause stop', decodeData: '', encodeHeaders: 'stop' };
  const post = { method: 'POST', headers: 'content-length: 5\r\n', body: 'hello' };
  const next = await proxy.send({ a: script, b: { decodeHeaders: '' } }, post);
  await next.sees('a decodeHeaders /');
  await gone.perform('b', words);
  await gone.sees(event);
  t.same(await next.events(), ['a decodeHeaders /'], 'it is still held and paused');
  await next.perform('a', 'resume');
  await next.sees("a decodeData 'hello' end");
  await next.perform('a', 'continueDecoding');
  const host = await proxy.host(next);
  await host.readUntil('hello');
  await gone.perform('b', words);
  host.write(response(200, 'second', { connection: 'close' }));
  await next.sees('a encodeHeaders 200');
  await gone.perform('b', words);
  t.equal(next.client.received, '', 'its response is still held');
  await next.perform('a', 'continueEncoding');
  t.match(await next.answer(), { status: 200, rest: 'second' });
  t.equal(await proxy.logged(next), '200 via_upstream - 5 6');
  t.same(changes(await proxy.counters(), before), { '2xx': 1 });
  const asked = (await gone.events()).filter((each) => /^b (held|code)/.test(each));
  t.equal(asked.length > 0, /\b(held|code)\b/.test(words));
  t.ok(
    asked.every((each) => each === 'b held 0 0' || each === 'b code 0'),
    'nothing of the stream can be read',
  );
}
