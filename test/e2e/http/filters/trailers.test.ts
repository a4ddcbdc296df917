// Trailers that filters add, change and remove: later filters see them like the peer's own trailers, and they reach the other
// side.

import t from 'tap';
import type { RawConnection } from '../../harness/index.js';
import { dechunk, parseMessage } from '../message.js';
import type { Script } from './scripted-filter.js';
import { type ScriptedRequest, seenBy, startScriptedProxy, WATCH } from './scripted-proxy.js';

const CHUNKED = 'transfer-encoding: chunked\r\n';
const END = '\r\n0\r\nx-sum: 5\r\n\r\n';
const proxy = await startScriptedProxy(t);
t.afterEach(() => proxy.settle());

/** How a filter adds trailers to a request with the body 'hello'. */
const TO_REQUEST: Record<string, { script: Script; later?: string }> = {
  'at the end of the body': { script: { decodeHeaders: 'remove:content-length', decodeData: add('request') } },
  'to a held body': {
    script: { decodeHeaders: 'remove:content-length stop', decodeData: `${add('request')} buffer` },
    later: 'continueDecoding',
  },
  'to a held body, later': {
    script: { decodeHeaders: 'remove:content-length stop', decodeData: 'buffer' },
    later: `${add('request')} continueDecoding`,
  },
  'after bytes that the filter adds': {
    script: { decodeHeaders: 'remove:content-length', decodeData: `putRequest:hello ${add('request')} drop` },
    later: 'continueDecoding',
  },
};
for (const [how, { script, later }] of Object.entries(TO_REQUEST)) {
  t.test(`a request gets trailers ${how}`, async (t) => {
    const request = await proxy.send(
      { a: WATCH, b: script, c: WATCH },
      { method: 'POST', headers: 'content-length: 5\r\n', body: 'hello' },
    );
    await request.sees("a decodeData 'hello' end");
    if (later !== undefined) await request.perform('b', later);
    const host = await proxy.host(request);
    const asked = parseMessage(await host.readUntil(END));
    t.match(dechunk(asked.rest), { body: 'hello', trailers: { 'x-sum': '5' } });
    const seen = seenBy(await request.events(), 'c');
    t.same(seen, ['decodeHeaders /', "decodeData 'hello'", 'decodeTrailers']);
    await answer(request, host);
  });
}

/** How a filter adds trailers to a response with the body 'hello'. */
const TO_RESPONSE: Record<string, { script: Script; later?: string }> = {
  'at the end of the body': { script: { encodeHeaders: 'remove:content-length', encodeData: add('response') } },
  'to a held body, later': {
    script: { encodeHeaders: 'remove:content-length stop', encodeData: 'buffer' },
    later: `${add('response')} continueEncoding`,
  },
};
for (const [how, { script, later }] of Object.entries(TO_RESPONSE)) {
  t.test(`a response gets trailers ${how}`, async (t) => {
    const request = await proxy.send({ a: WATCH, b: script, c: WATCH });
    (await proxy.host(request)).write('HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 5\r\n\r\nhello');
    await request.sees("c encodeData 'hello' end");
    if (later !== undefined) await request.perform('b', later);
    const { rest } = parseMessage(await request.client.readUntil(END));
    t.match(dechunk(rest), { body: 'hello', trailers: { 'x-sum': '5' } });
    t.same(seenBy(await request.events(), 'a').slice(1, 4), [
      'encodeHeaders 200',
      "encodeData 'hello'",
      'encodeTrailers',
    ]);
  });
}

t.test('messages without a body can get trailers', async (t) => {
  const request = await proxy.send({
    b: { decodeHeaders: add('request'), encodeHeaders: `remove:content-length ${add('response')}` },
  });
  const host = await proxy.host(request);
  t.match(dechunk(parseMessage(await host.readUntil('x-sum: 5\r\n\r\n')).rest), {
    body: '',
    trailers: { 'x-sum': '5' },
  });
  host.write('HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 0\r\n\r\n');
  const { rest } = parseMessage(await request.client.readUntil('x-sum: 5\r\n\r\n'));
  t.match(dechunk(rest), { body: '', trailers: { 'x-sum': '5' } });
});

t.test('received trailers can be changed and removed', async (t) => {
  const request = await proxy.send(
    {
      b: {
        decodeTrailers: 'requestTrailer:x-more:1 remove:x-sum add:x-sum:6',
        encodeTrailers: 'remove:x-sum responseTrailer:x-more:1',
      },
    },
    { method: 'POST', headers: CHUNKED, body: '5\r\nhello\r\n0\r\nx-sum: 5\r\n\r\n' },
  );
  const host = await proxy.host(request);
  t.same(dechunk(parseMessage(await host.readUntil('x-sum: 6\r\n\r\n')).rest).trailers, { 'x-sum': '6' });
  host.write(`HTTP/1.1 200 OK\r\nconnection: close\r\n${CHUNKED}\r\n5\r\nhello\r\n0\r\nx-sum: 5\r\n\r\n`);
  t.match(parseMessage(await request.client.readUntil('0\r\n\r\n')).rest, /^5\r\nhello\r\n0\r\n\r\n$/);
  const refusals = (await request.events()).filter((event) => event === 'b may add no trailers');
  t.equal(refusals.length, 2, 'the message has trailers already');
});

t.test('trailers can be added at the end of a message only', async (t) => {
  const request = await proxy.send(
    { b: { decodeHeaders: add('request'), decodeData: add('request') } },
    { method: 'POST', headers: CHUNKED, body: '3\r\none\r\n' },
  );
  const host = await proxy.host(request);
  await host.readUntil('one');
  t.equal((await request.events()).filter((event) => event === 'b may add no trailers').length, 2);
  await request.perform('b', add('response'));
  request.client.write('3\r\ntwo\r\n0\r\n\r\n');
  t.match(await host.readUntil(END), /two\r\n0\r\nx-sum: 5\r\n\r\n$/);
  t.equal((await request.events()).filter((event) => event === 'b may add no trailers').length, 3);
  await answer(request, host);
});

t.test('added trailers can be held by a later filter, and are discarded with their request', async (t) => {
  const scripts = {
    b: { decodeHeaders: 'remove:content-length', decodeData: add('request') },
    c: { decodeTrailers: 'stop' },
  };
  const line = { method: 'POST', headers: 'content-length: 5\r\n', body: 'hello' };
  const request = await proxy.send(scripts, line);
  await request.sees('c decodeTrailers');
  await request.perform('c', 'continueDecoding');
  const host = await proxy.host(request);
  t.match(dechunk(parseMessage(await host.readUntil(END)).rest), { trailers: { 'x-sum': '5' } });
  await answer(request, host);
  const other = await proxy.send(scripts, line);
  await other.sees('c decodeTrailers');
  other.client.reset();
  await other.sees('c onDestroy');
});

t.test('no exception was logged', async (t) => {
  t.equal(proxy.faults, 0, proxy.baton.stderr);
});

function add(message: 'request' | 'response'): string {
  return `${message}Trailer:x-sum:5`;
}

async function answer(request: ScriptedRequest, host: RawConnection): Promise<void> {
  host.write('HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 0\r\n\r\n');
  t.match(await request.answer(), { status: 200 });
}
