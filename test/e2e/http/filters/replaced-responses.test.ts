// Upstream responses that a filter replaces with a local reply: the client gets the reply without the other filters, which have
// already seen the response, and nothing of the replaced response.

import t from 'tap';
import type { Script } from './scripted-filter.js';
import { changes, seenBy, startScriptedProxy, WATCH } from './scripted-proxy.js';

const proxy = await startScriptedProxy(t);
t.afterEach(() => proxy.settle());

const CHUNKED = 'transfer-encoding: chunked\r\n';
const RESPONSE = `HTTP/1.1 200 OK\r\nconnection: close\r\n${CHUNKED}\r\n3\r\none\r\n3\r\ntwo\r\n0\r\nx-sum: 6\r\n\r\n`;

/** How a filter replaces the response above. */
const IN_RESPONSE: Record<string, Script> = {
  'at its header section': { encodeHeaders: 'reply:502 stop' },
  'at its header section, and continues': { encodeHeaders: 'reply:502 continue' },
  'at its body, with a held header section': { encodeHeaders: 'stop', encodeData: 'reply:502 buffer' },
  'at the second piece of its body': { encodeHeaders: 'stop', encodeData: ['buffer', 'reply:502 continue'] },
  'at its trailers': { encodeHeaders: 'stop', encodeData: 'buffer', encodeTrailers: 'reply:502 continue' },
  'by a timer': { encodeHeaders: 'soon:reply:502 stop', encodeData: 'buffer', encodeTrailers: 'stop' },
};
for (const [when, script] of Object.entries(IN_RESPONSE)) {
  t.test(`a response is replaced ${when}`, async (t) => {
    const before = await proxy.counters();
    const request = await proxy.send({ a: WATCH, b: script, c: WATCH });
    const host = await proxy.host(request);
    host.write(RESPONSE);
    const answer = await request.answer();
    t.match(answer, { status: 502, headers: { 'content-length': '10' }, rest: 'reply of b' });
    await request.sees('a onDestroy');
    t.same(seenBy(await request.events(), 'a'), ['decodeHeaders / end', 'onDestroy'], 'the reply bypasses the filters');
    t.equal(seenBy(await request.events(), 'c').filter((event) => event.startsWith('encodeHeaders')).length, 1);
    t.equal(await proxy.logged(request), '502 scripted - 0 10');
    t.same(changes(await proxy.counters(), before), { '5xx': 1 });
    const next = await proxy.send({ b: { decodeHeaders: 'reply:200' } }, { on: request.client });
    t.match(await next.answer(), { status: 200 }, 'the connection continues');
  });
}

t.test('a local reply held by a filter is the only response', async (t) => {
  const before = await proxy.counters();
  const held: Script = { encodeHeaders: 'stop' };
  const request = await proxy.send({ a: held, b: {}, c: WATCH });
  const host = await proxy.host(request);
  await request.perform('b', 'soon:reply:403');
  await request.sees('b timer reply:403');
  t.not((await host.readToEnd()).closed, 'open', 'the request to the host is cancelled');
  await request.perform('a', 'continueEncoding');
  t.match(await request.answer(), { status: 403, rest: 'reply of b' });
  t.equal(await proxy.logged(request), '403 scripted - 0 10');
  t.same(changes(await proxy.counters(), before), { '4xx': 1 });
});

t.test('a local reply held by a filter can be replaced by another', async (t) => {
  const request = await proxy.send({ a: { encodeHeaders: 'stop' }, b: { decodeHeaders: 'reply:403 stop' } });
  await request.sees('a encodeHeaders 403');
  await request.perform('b', 'reply:500');
  t.match(await request.answer(), { status: 500, rest: 'reply of b' });
  t.equal(await proxy.logged(request), '500 scripted - 0 10');
  t.same(seenBy(await request.events(), 'a'), ['encodeHeaders 403', 'onDestroy']);
});

t.test('a local reply that a filter never releases ends with the stream idle timeout', async (t) => {
  const impatient = await startScriptedProxy(t, { manager: { stream_idle_timeout: '0.3s' } });
  const request = await impatient.send({ a: { encodeHeaders: 'stop' }, b: { decodeHeaders: 'reply:403 stop' } });
  t.match(await request.answer(), { status: 504, rest: 'stream timeout' });
  t.equal(await impatient.logged(request), '504 stream_idle_timeout SI 0 14');
  await impatient.settle();
});

t.test('no exception was logged', async (t) => {
  t.equal(proxy.faults, 0, proxy.baton.stderr);
});
