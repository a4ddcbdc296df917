// A request whose filter throws is answered with 500, or cut off if its response has begun, and one error is logged; other connections and requests continue, and
// nothing leaks.

import t, { type Test } from 'tap';
import { waitFor } from '../../harness/index.js';
import { response } from '../raw-upstream.js';
import type { Script, Scripts } from './scripted-filter.js';
import { startScriptedProxy } from './scripted-proxy.js';

const proxy = await startScriptedProxy(t);

const CHUNKED = 'transfer-encoding: chunked\r\n';
const MESSAGE = '3\r\none\r\n3\r\ntwo\r\n0\r\nx-sum: 6\r\n\r\n';

/** The header section of the other reply was sent before. */
const REPLY_BEGUN = 'at the body of a local reply';

/** Where the request has reached the host, the host answers. */
const REQUEST_FAULTS: Record<string, Scripts> = {
  'when it is created': { a: { onDestroy: '' }, b: { create: 'throw' } },
  'because it replies while it is created': { a: { onDestroy: '' }, b: { create: 'reply:403' } },
  ...messageFaults('request', 'decode', 'a'),
  'at the header section of a local reply': { a: { encodeHeaders: 'throw' }, b: { decodeHeaders: 'reply:403 stop' } },
  [REPLY_BEGUN]: {
    a: { encodeHeaders: '', encodeData: 'throw' },
    b: { decodeHeaders: 'reply:403 stop' },
  },
  'at the body of a local reply whose header section is held': {
    a: { encodeHeaders: 'stop', encodeData: 'throw' },
    b: { decodeHeaders: 'reply:403 stop' },
  },
  'at a local reply sent by a timer': {
    a: { encodeHeaders: 'throw' },
    b: { decodeHeaders: 'soon:reply:403 stop', decodeTrailers: 'stop' },
  },
  'in run() called by a timer': { b: { decodeHeaders: 'soon:run:throw stop' } },
  'in run() called by a callback': { b: { decodeHeaders: 'run:throw stop' } },
  'in an async function after an await': { b: { decodeHeaders: 'await:throw stop' } },
  'because a header value has a line break': { b: { decodeHeaders: 'add:x-a:b\r\nx-c stop' } },
  'because a header value is not a string': { b: { decodeHeaders: 'addNumber:x-a:5' } },
  'because a header name has a line break': { b: { decodeHeaders: 'add:x-a\r\nx-b:c' } },
  'because a header name is a pseudo-header': { b: { decodeHeaders: 'add::path' } },
  'because a path has a space': { b: { decodeHeaders: 'path:/a%20b' } },
  'because a path is empty': { b: { decodeHeaders: 'path:' } },
  'because a path does not begin with a slash': { b: { decodeHeaders: 'path:a' } },
  'because a method has a line break': { b: { decodeHeaders: 'method:GET%0D%0A' } },
  'because its reply has an informational status': { b: { decodeHeaders: 'reply:100 stop' } },
  'because its reply has a fractional status': { b: { decodeHeaders: 'reply:200.5 stop' } },
  'in the header editor of its reply': { b: { decodeHeaders: 'reply:403:1:throw stop' } },
};
const RESPONSE_FAULTS: Record<string, Scripts> = {
  ...messageFaults('response', 'encode', 'c'),
  'because a response status is informational': { b: { encodeHeaders: 'status:101' } },
  'because a response status is not a number': { b: { encodeHeaders: 'status:x' } },
};

// A held request and an idle connection on the same worker, which must stay unaffected.
const neighbour = await proxy.send({ b: { decodeHeaders: 'stop' } });
t.teardown(() => neighbour.client.destroy());

for (const [where, scripts] of Object.entries(REQUEST_FAULTS)) {
  t.test(`a filter throws ${where}`, async (t) => {
    const before = proxy.faults;
    const request = await proxy.send(scripts, { method: 'POST', headers: CHUNKED, body: MESSAGE });
    const { text, closed } = await request.client.readToEnd();
    t.not(closed, 'open', 'the connection is closed');
    t.notMatch(text, /reply of b/, 'without the other reply');
    if (where !== REPLY_BEGUN)
      t.match(text, /^HTTP\/1.1 500 Internal Server Error\r\n(.+\r\n)*\r\ninternal error$/, 'after a reply');
    await isLoggedOnce(t, before);
    await othersAreUnaffected(t);
  });
}

for (const [where, scripts] of Object.entries(RESPONSE_FAULTS)) {
  t.test(`a filter throws ${where}`, async (t) => {
    const before = proxy.faults;
    const request = await proxy.send(scripts);
    const host = await proxy.host(request);
    host.write(`HTTP/1.1 200 OK\r\nconnection: close\r\n${CHUNKED}\r\n${MESSAGE}`);
    const { text, closed } = await request.client.readToEnd();
    t.not(closed, 'open', 'the connection is closed');
    t.notMatch(text, /\n0\r\n/, 'without a complete response');
    await isLoggedOnce(t, before);
    await othersAreUnaffected(t);
  });
}

for (const [when, scripts] of Object.entries({
  'after a response': { b: { onDestroy: 'throw' } },
  'after a local reply of its own': { b: { decodeHeaders: 'reply:200', onDestroy: 'throw' } },
} satisfies Record<string, Record<string, Script>>)) {
  t.test(`a filter throws at the end of its request, ${when}`, async (t) => {
    const before = proxy.faults;
    const request = await proxy.send({ a: { onDestroy: '' }, c: { onDestroy: '' }, ...scripts });
    if (!('decodeHeaders' in scripts.b))
      (await proxy.host(request)).write(response(200, 'reply of b', { connection: 'close' }));
    t.match(await request.answer(), { status: 200, rest: 'reply of b' }, 'the client has its response');
    t.same(
      (await request.events()).filter((event) => event.includes('onDestroy')),
      ['a onDestroy', 'b onDestroy', 'c onDestroy'],
    );
    t.match(await proxy.logged(request), /^200 /);
    await isLoggedOnce(t, before);
    t.match(proxy.baton.stderr, 'onDestroy() of a filter failed: Error: scripted exception of b');
    const next = await proxy.send({ b: { decodeHeaders: 'reply:200' } }, { on: request.client });
    t.match(await next.answer(), { status: 200 }, 'and the next one');
    request.client.end();
    await othersAreUnaffected(t);
  });
}

t.test('an access logger throws', async (t) => {
  const before = proxy.faults;
  const request = await proxy.send({ b: { decodeHeaders: 'reply:418' } });
  t.match(await request.answer(), { status: 418, rest: 'reply of b' }, 'the client has its response');
  t.match(await proxy.logged(request), /^418 /, 'the other logger has its line');
  await isLoggedOnce(t, before);
  t.match(proxy.baton.stderr, 'an access logger failed: Error: scripted exception of a logger');
  const next = await proxy.send({ b: { decodeHeaders: 'reply:200' } }, { on: request.client });
  t.match(await next.answer(), { status: 200 }, 'and the connection continues');
  request.client.end();
  await othersAreUnaffected(t);
});

t.test('a filter throws when its client disconnects', async (t) => {
  const before = proxy.faults;
  const request = await proxy.send({
    a: { onDestroy: '' },
    b: { decodeHeaders: 'stop', onDestroy: 'throw' },
    c: { onDestroy: '' },
  });
  await request.sees('b decodeHeaders / end');
  request.client.reset();
  await request.sees('c onDestroy');
  await isLoggedOnce(t, before);
  t.match(await proxy.logged(request), /^0 downstream_remote_disconnect DC /);
  await othersAreUnaffected(t);
});

t.test("an unhandled rejection of a filter's promise is logged", async (t) => {
  const before = proxy.faults;
  const request = await proxy.send({ b: { decodeHeaders: 'reject stop' } });
  await isLoggedOnce(t, before);
  t.match(proxy.baton.stderr, 'scripted rejection of b');
  await request.perform('b', 'reply:418');
  t.match(await request.answer(), { status: 418 }, 'its request continues');
  request.client.end();
  await othersAreUnaffected(t);
});

t.test('the worker has survived every fault', async (t) => {
  t.notMatch(proxy.baton.stderr, 'died');
  t.equal(await proxy.baton.stat('server.envoy_bug_failures'), proxy.faults, 'each fault is counted');
  await neighbour.perform('b', 'reply:200');
  t.match(await neighbour.answer(), { status: 200 });
  await proxy.settle();
});

/** Scripts in which b throws at a part of a message, when it arrives or when `holder`, which comes before, releases it. */
function messageFaults(message: string, way: 'decode' | 'encode', holder: 'a' | 'c'): Record<string, Scripts> {
  const [head, body, trailers] = [`${way}Headers`, `${way}Data`, `${way}Trailers`];
  const resume = way === 'decode' ? 'continueDecoding' : 'continueEncoding';
  const held = { [head]: 'stop', [body]: 'buffer', [trailers]: 'continue' };
  const heldForTimer = { ...held, [trailers]: `soon:${resume} stop` };
  return {
    [`at the header section of a ${message}`]: { b: { [head]: 'throw' } },
    [`at the body of a ${message}`]: { b: { [body]: 'throw' } },
    [`at the trailers of a ${message}`]: { b: { [trailers]: 'throw' } },
    [`at a ${message} that another filter has held`]: { [holder]: held, b: { [body]: 'throw' } },
    [`at the header section of a ${message} that another filter releases by a timer`]: {
      [holder]: heldForTimer,
      b: { [head]: 'throw' },
    },
    [`at the body of a ${message} that another filter releases by a timer`]: {
      [holder]: heldForTimer,
      b: { [body]: 'throw' },
    },
  };
}

async function isLoggedOnce(t: Test, before: number): Promise<void> {
  await waitFor(() => proxy.faults > before, { what: 'the error in the log' });
  t.equal(proxy.faults, before + 1, 'it is logged once');
}

/** Only the neighbour is left. */
async function othersAreUnaffected(t: Test): Promise<void> {
  const { baton } = proxy;
  await baton.waitForStat('http.main.downstream_rq_active', 1);
  await baton.waitForStat('http.main.downstream_cx_active', 1);
  await baton.waitForStat('cluster.host.upstream_rq_active', 0);
  t.equal(
    await baton.stat('http.main.downstream_cx_destroy'),
    await baton.stat('http.main.downstream_cx_total').then((total) => total! - 1),
  );
  t.same(await neighbour.events(), ['b decodeHeaders / end']);
}
