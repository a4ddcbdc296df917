// A chain of filters: which filters run, in which order, for every kind of message.

import t from 'tap';
import { parseMessage } from '../message.js';
import { response } from '../raw-upstream.js';
import type { Scripts } from './scripted-filter.js';
import { readWhole, seenBy, startScriptedProxy, WATCH } from './scripted-proxy.js';

const proxy = await startScriptedProxy(t);
t.afterEach(() => proxy.settle());

const ALL = { a: WATCH, b: WATCH, c: WATCH };

t.test('requests pass the filters in configured order, responses in reverse order', async (t) => {
  const script = (name: string) => ({ decodeHeaders: `add:x-way:${name}`, encodeHeaders: `add:x-way:${name}` });
  const request = await proxy.send({ a: script('a'), b: script('b'), c: script('c') });
  const host = await proxy.host(request);
  t.equal(parseMessage(await host.readUntil('\r\n\r\n')).headers['x-way'], 'a,b,c');
  host.write(response(200, 'fine', { connection: 'close' }));
  t.equal((await request.answer()).headers['x-way'], 'c,b,a');
  t.same(await request.events(), [
    'a decodeHeaders / end',
    'b decodeHeaders / end',
    'c decodeHeaders / end',
    'c encodeHeaders 200',
    'b encodeHeaders 200',
    'a encodeHeaders 200',
    'a onDestroy',
    'b onDestroy',
    'c onDestroy',
  ]);
});

t.test('a filter that does not apply to a request is not created for it', async (t) => {
  for (const scripts of [{}, { b: WATCH }] as Scripts[]) {
    const request = await proxy.send(scripts);
    (await proxy.host(request)).write(response(200, 'fine', { connection: 'close' }));
    t.match(await request.answer(), { status: 200, rest: 'fine' });
    const events = await request.events();
    t.ok(events.every((event) => event.startsWith('b ')));
    t.equal(events.length > 0, 'b' in scripts);
  }
});

t.test('several filters may hold a message, one after the other', async (t) => {
  const script = {
    decodeHeaders: 'stop',
    decodeData: 'buffer',
    decodeTrailers: 'stop',
    encodeHeaders: 'stop',
    encodeData: 'buffer',
    encodeTrailers: 'stop',
  };
  const body = '3\r\none\r\n3\r\ntwo\r\n0\r\nx-sum: 6\r\n\r\n';
  const chunked = 'transfer-encoding: chunked\r\n';
  const request = await proxy.send({ a: script, b: script, c: script }, { method: 'POST', headers: chunked, body });
  await request.sees('a decodeTrailers');
  for (const [filter, next] of ['ab', 'bc', 'c']) {
    if (next !== undefined) t.same(seenBy(await request.events(), next), []);
    await request.perform(filter!, 'continueDecoding');
  }
  const host = await proxy.host(request);
  t.match(
    await host.readUntil('x-sum: 6\r\n\r\n'),
    /\r\n\r\n(6\r\nonetwo|3\r\none\r\n3\r\ntwo)\r\n0\r\nx-sum: 6\r\n\r\n$/,
  );
  host.write(`HTTP/1.1 200 OK\r\nconnection: close\r\n${chunked}\r\n${body}`);
  await request.sees('c encodeTrailers');
  for (const filter of 'cba') {
    t.equal(request.client.received, '');
    await request.perform(filter, 'continueEncoding');
  }
  t.match(
    await request.client.readUntil('x-sum: 6\r\n\r\n'),
    /\r\n\r\n(6\r\nonetwo|3\r\none\r\n3\r\ntwo)\r\n0\r\nx-sum: 6\r\n\r\n$/,
  );
});

t.test('a filter that recomputes the route gets new filters after it, and none runs twice', async (t) => {
  const request = await proxy.send({ a: WATCH, b: { decodeHeaders: 'soon:reroute stop' }, c: WATCH });
  (await proxy.host(request)).write(response(200, 'fine', { connection: 'close' }));
  t.match(await request.answer(), { status: 200, rest: 'fine' });
  t.same((await request.events()).slice(0, 5), [
    'a decodeHeaders / end',
    'b decodeHeaders / end',
    'b timer reroute',
    'c onDestroy',
    'c decodeHeaders / end',
  ]);
  const encoded = (await request.events()).filter((event) => event.includes('encodeHeaders'));
  t.same(encoded, ['c encodeHeaders 200', 'a encodeHeaders 200']);
});

t.test('a filter recomputes the route within its callback, or is told that it is too late', async (t) => {
  for (const status of ['', ' stop']) {
    const request = await proxy.send({ a: WATCH, b: { decodeHeaders: `reroute${status}` }, c: WATCH });
    (await proxy.host(request)).write(response(200, 'fine', { connection: 'close' }));
    t.match(await request.answer(), { status: 200, rest: 'fine' });
    const events = await request.events();
    t.same(
      events.filter((event) => event.includes('decodeHeaders')),
      ['a decodeHeaders / end', 'b decodeHeaders / end', 'c decodeHeaders / end'],
    );
    t.equal(
      seenBy(events, 'c').filter((event) => event === 'onDestroy').length,
      2,
      'the filter of the former route is gone',
    );
  }
});

t.test('a filter that does not hold the header section cannot recompute the route', async (t) => {
  const request = await proxy.send({ a: WATCH, b: { decodeHeaders: 'soon:reroute' }, c: WATCH });
  await request.sees('b timer reroute');
  (await proxy.host(request)).write(response(200, 'fine', { connection: 'close' }));
  t.match(await request.answer(), { status: 200, rest: 'fine' });
  t.equal(seenBy(await request.events(), 'c').filter((event) => event === 'onDestroy').length, 1);
});

t.test('responses without a body end with their header section', async (t) => {
  for (const [method, answer] of [
    ['HEAD', 'HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 5\r\n\r\n'],
    ['GET', 'HTTP/1.1 204 No Content\r\nconnection: close\r\n\r\n'],
    ['GET', 'HTTP/1.1 304 Not Modified\r\nconnection: close\r\ncontent-length: 5\r\n\r\n'],
  ] as const) {
    const hold = { ...WATCH, encodeHeaders: 'soon:continueEncoding stop' };
    const request = await proxy.send({ a: WATCH, b: hold, c: WATCH }, { method });
    (await proxy.host(request)).write(answer);
    const status = answer.slice(9, 12);
    const { headers } = parseMessage(await request.client.readUntil('\r\n\r\n'));
    t.equal(headers['content-length'], /content-length: (\d)/.exec(answer)?.[1]);
    t.same(seenBy(await request.events(), 'a').slice(1), [`encodeHeaders ${status} end`, 'onDestroy']);
    const next = await proxy.send({ b: { decodeHeaders: 'reply:200' } }, { on: request.client });
    t.match(await next.answer(), { status: 200, rest: 'reply of b' }, 'and the next response follows');
  }
});

t.test(
  '100-continue does not pass the filters, and a refused request is answered before its body is sent',
  async (t) => {
    const line = { method: 'POST', headers: 'content-length: 5\r\nexpect: 100-continue\r\n' };
    const request = await proxy.send(ALL, line);
    t.match(await request.client.readUntil('\r\n\r\n'), /^HTTP\/1\.1 100 Continue\r\n/);
    request.client.write('hello');
    const host = await proxy.host(request);
    t.equal((await readWhole(host)).rest, 'hello');
    host.write(response(200, 'fine', { connection: 'close' }));
    t.match(await request.answer(), { status: 200, rest: 'fine' });
    t.notMatch(await request.events(), [/100/]);
    const refused = await proxy.send({ b: { decodeHeaders: 'reply:403' } }, line);
    await refused.client.readUntil('100 Continue\r\n\r\n');
    t.match(parseMessage((await refused.client.readToEnd()).text), { status: 403, rest: 'reply of b' });
  },
);

t.test(
  'informational responses bypass the filters, and none is sent after a final response that is held',
  async (t) => {
    const passing = await startScriptedProxy(t, { manager: { proxy_100_continue: true } });
    const request = await passing.send({ a: WATCH, b: { encodeHeaders: 'stop' } });
    const host = await passing.host(request);
    host.write('HTTP/1.1 103 Early Hints\r\nlink: </x>\r\n\r\n');
    t.match(await request.client.readUntil('\r\n\r\n'), /^HTTP\/1\.1 103 /);
    host.write(response(200, 'fine', { connection: 'close' }));
    await request.sees('b encodeHeaders 200');
    await request.perform('b', 'continueEncoding');
    t.match(await request.answer(), { status: 200, rest: 'fine' });
    t.notMatch(await request.events(), [/103/]);
  },
);

const UPGRADE = 'connection: upgrade\r\nupgrade: websocket\r\n';

t.test('the bytes of a tunnel pass the filters, and may be held, in both directions', async (t) => {
  const held = {
    decodeHeaders: 'stop',
    decodeData: ['buffer', 'continue'],
    encodeHeaders: 'stop',
    encodeData: ['buffer', 'continue'],
  };
  const request = await proxy.send({ a: WATCH, b: held, c: WATCH }, { headers: UPGRADE });
  await request.sees('a decodeHeaders /');
  await request.perform('b', 'continueDecoding');
  const host = await proxy.host(request);
  t.match(parseMessage(await host.readUntil('\r\n\r\n')).headers, { upgrade: 'websocket' });
  host.write(`HTTP/1.1 101 Switching Protocols\r\n${UPGRADE}\r\n`);
  await request.sees('b encodeHeaders 101');
  t.equal(request.client.received, '');
  await request.perform('b', 'continueEncoding');
  t.match(await request.client.readUntil('\r\n\r\n'), /^HTTP\/1\.1 101 /);
  request.client.write('ping');
  await request.sees("b decodeData 'ping'");
  t.equal(host.received, '');
  request.client.write(' ping');
  t.equal(await host.read(9), 'ping ping');
  host.write('pong');
  await request.sees("b encodeData 'pong'");
  t.equal(request.client.received, '');
  host.write(' pong');
  t.equal(await request.client.read(9), 'pong pong');
  host.end();
  t.equal((await request.client.readToEnd()).closed, 'end');
  request.client.end();
  await request.sees('a onDestroy');
  const details = 'upstream_reset_after_response_started{connection_termination}';
  t.equal(await proxy.logged(request), `101 ${details} UC 9 9`, 'the host has ended the tunnel first');
});

t.test('a filter may answer in place of an upgrade', async (t) => {
  for (const script of [{ decodeHeaders: 'reply:403' }, { encodeHeaders: 'reply:403' }]) {
    const request = await proxy.send({ b: script }, { headers: UPGRADE });
    if ('encodeHeaders' in script) {
      (await proxy.host(request)).write(`HTTP/1.1 101 Switching Protocols\r\n${UPGRADE}\r\n`);
    }
    t.match(parseMessage((await request.client.readToEnd()).text), { status: 403, rest: 'reply of b' });
    t.equal(await proxy.logged(request), '403 scripted - 0 10');
  }
  await proxy.baton.waitForStat('http.main.downstream_cx_upgrades_active', 0);
});

t.test('no exception was logged', async (t) => {
  t.equal(proxy.faults, 0, proxy.baton.stderr);
});
