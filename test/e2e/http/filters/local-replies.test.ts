// Local replies of filters: the client gets the reply completely and nothing else, whenever it is sent; if the header section
// of another response was sent already, the client sees that response aborted.

import t from 'tap';
import { parseMessage } from '../message.js';
import { response } from '../raw-upstream.js';
import type { Script } from './scripted-filter.js';
import { changes, type RequestLine, seenBy, startScriptedProxy, WATCH } from './scripted-proxy.js';

const proxy = await startScriptedProxy(t);
t.afterEach(() => proxy.settle());

const CHUNKED = 'transfer-encoding: chunked\r\n';
const POST: RequestLine = { method: 'POST', headers: CHUNKED };
const WHOLE: RequestLine = { ...POST, body: '3\r\none\r\n3\r\ntwo\r\n0\r\nx-sum: 6\r\n\r\n' };

/** How a filter replies to the request WHOLE. */
const IN_REQUEST: Record<string, Script> = {
  'at the header section': { decodeHeaders: 'reply:403 stop' },
  'at the header section, and continues': { decodeHeaders: 'reply:403 continue' },
  'at the body, with a held header section': { decodeHeaders: 'stop', decodeData: 'reply:403 buffer' },
  'at the second piece of the body': { decodeHeaders: 'stop', decodeData: ['buffer', 'reply:403 continue'] },
  'at the trailers': { decodeHeaders: 'stop', decodeData: 'buffer', decodeTrailers: 'reply:403 stop' },
  'by a timer': { decodeHeaders: 'soon:reply:403 stop', decodeTrailers: 'stop' },
};
for (const [when, script] of Object.entries(IN_REQUEST)) {
  t.test(`a request gets a local reply ${when}`, async (t) => {
    const before = await proxy.counters();
    const request = await proxy.send({ a: WATCH, b: script, c: WATCH }, WHOLE);
    t.match(await request.answer(), { status: 403, headers: { 'content-length': '10' }, rest: 'reply of b' });
    await request.sees('a onDestroy');
    const events = await request.events();
    t.same(seenBy(events, 'c'), ['encodeHeaders 403', "encodeData 'reply of b' end", 'onDestroy'], 'c sees the answer');
    t.same(seenBy(events, 'a').slice(-3), ['encodeHeaders 403', "encodeData 'reply of b' end", 'onDestroy']);
    t.ok(events.indexOf('c encodeHeaders 403') < events.indexOf('a encodeHeaders 403'), 'before a does');
    t.notOk(proxy.isAtHost(request), 'the request reaches no host');
    t.match(await proxy.logged(request), /^403 scripted - [036] 10$/);
    // As in Envoy: a reply that ends before its request resets it.
    const isBeforeEnd = when.startsWith('at the header') || when.includes('body');
    t.same(changes(await proxy.counters(), before), { '4xx': 1, ...(isBeforeEnd && { rx_reset: 1 }) });
  });
}

t.test('the connection stays open after a reply to a complete request', async (t) => {
  const first = await proxy.send({ b: { decodeTrailers: 'reply:403 stop', decodeHeaders: 'stop' } }, WHOLE);
  t.notMatch((await first.answer()).headers, { connection: /./ });
  const second = await proxy.send({}, { on: first.client });
  const host = await proxy.host(second);
  host.write(response(200, 'fine', { connection: 'close' }));
  t.match(await second.answer(), { status: 200, rest: 'fine' });
});

t.test('the connection closes after a reply to an incomplete request', async (t) => {
  const request = await proxy.send({ b: { decodeData: 'reply:403' } }, { ...POST, body: '3\r\none\r\n' });
  const { text, closed } = await request.client.readToEnd();
  t.match(parseMessage(text), { status: 403, headers: { connection: 'close' }, rest: 'reply of b' });
  t.equal(closed, 'end');
});

t.test('a request that has reached the host is cancelled there', async (t) => {
  for (const script of [{ decodeData: ['', 'reply:403'] }, {}]) {
    const request = await proxy.send({ b: script }, { ...POST, body: '3\r\none\r\n' });
    const host = await proxy.host(request);
    if ('decodeData' in script) {
      await host.readUntil('one\r\n');
      request.client.write('3\r\ntwo\r\n');
    } else await request.perform('b', 'soon:reply:403');
    t.equal((await request.answer()).status, 403);
    t.not((await host.readToEnd()).closed, 'open');
    t.match(await proxy.logged(request), /^403 scripted - [36] 10$/);
  }
});

t.test('a reply has one content-length, that of its body, whatever filters write into its headers', async (t) => {
  for (const length of [5, 10, 500]) {
    const request = await proxy.send({ b: { decodeHeaders: `reply:403:10:${length} stop` } });
    const head = await request.client.readUntil('\r\n\r\n');
    t.same(head.match(/content-length: .*/g), ['content-length: 10']);
    t.equal(await request.client.read(10), 'rrrrrrrrrr');
    const next = await proxy.send({ b: { decodeHeaders: 'reply:200' } }, { on: request.client });
    t.match(await next.answer(), { status: 200, rest: 'reply of b' });
  }
});

t.test('a reply to HEAD has no body', async (t) => {
  const request = await proxy.send({ a: WATCH, b: { decodeHeaders: 'reply:403' } }, { method: 'HEAD' });
  t.match(parseMessage(await request.client.readUntil('\r\n\r\n')), {
    status: 403,
    headers: { 'content-length': '10' },
  });
  t.ok((await request.events()).includes('a encodeHeaders 403 end'));
  const next = await proxy.send({ b: { decodeHeaders: 'reply:200' } }, { on: request.client });
  t.match(await next.answer(), { status: 200 });
});

t.test('a long reply arrives completely', async (t) => {
  const request = await proxy.send({ b: { decodeHeaders: 'reply:403:300000' }, a: { encodeData: '' } });
  t.match(parseMessage(await request.client.readUntil('\r\n\r\n')).headers, { 'content-length': '300000' });
  t.ok((await request.client.read(300_000)) === 'r'.repeat(300_000));
});

t.test('text beyond ASCII is sent as UTF-8', async (t) => {
  const request = await proxy.send({ b: { decodeHeaders: 'say stop' } });
  const { rest } = await request.answer();
  t.equal(Buffer.from(rest, 'latin1').toString(), 'für 5 €');
});

const RESPONSE = `HTTP/1.1 200 OK\r\nconnection: close\r\n${CHUNKED}\r\n3\r\none\r\n3\r\ntwo\r\n0\r\nx-sum: 6\r\n\r\n`;

for (const [where, script] of Object.entries({
  'at the body': { encodeData: ['', 'reply:502 continue'] },
  'at the body, and holds it': { encodeData: ['', 'reply:502 buffer'] },
  'at the trailers': { encodeTrailers: 'reply:502 stop' },
  'by a timer': { encodeData: ['soon:reply:502 continue', 'buffer'], encodeTrailers: 'stop' },
})) {
  t.test(`a response whose header section was sent is aborted when a filter replies ${where}`, async (t) => {
    const before = await proxy.counters();
    const request = await proxy.send({ a: WATCH, b: script });
    const host = await proxy.host(request);
    const [head, rest] = [
      RESPONSE.slice(0, RESPONSE.indexOf('3\r\ntwo')),
      RESPONSE.slice(RESPONSE.indexOf('3\r\ntwo')),
    ];
    host.write(head);
    await request.client.readUntil('one\r\n');
    host.write(rest);
    const { text, closed } = await request.client.readToEnd();
    t.not(closed, 'open');
    t.notMatch(text, /\n0\r\n/, 'it does not look complete');
    t.match(await proxy.logged(request), /^200 scripted - 0 [36]$/);
    t.same(changes(await proxy.counters(), before), { '2xx': 1, rx_reset: 1, tx_reset: 1 });
  });
}

t.test('no exception was logged', async (t) => {
  t.equal(proxy.faults, 0, proxy.baton.stderr);
});
