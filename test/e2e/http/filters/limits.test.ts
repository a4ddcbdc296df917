// Limits of held data: a larger request is answered with 413, a larger response with 500 or, once its header section was sent,
// aborted.

import t from 'tap';
import { waitFor } from '../../harness/index.js';
import { parseMessage } from '../message.js';
import { readWhole, type ScriptedRequest, startScriptedProxy } from './scripted-proxy.js';

const LIMIT = 10_000;
const proxy = await startScriptedProxy(t, { listener: { per_connection_buffer_limit_bytes: LIMIT } });
t.afterEach(() => proxy.settle());

const FITS = 'x'.repeat(LIMIT);
const LENGTH = `content-length: ${LIMIT}\r\n`;
const LONGER = `content-length: ${LIMIT + 1}\r\n`;

t.test('a request of exactly the limit can be held', async (t) => {
  const request = await proxy.send(
    { b: { decodeHeaders: 'stop' }, a: { decodeData: '' } },
    { method: 'POST', headers: LENGTH, body: FITS },
  );
  await waitForBody(request, 'a decodeData');
  await request.perform('b', 'held continueDecoding');
  const host = await proxy.host(request);
  t.ok((await readWhole(host)).rest === FITS);
  host.write('HTTP/1.1 204 None\r\nconnection: close\r\n\r\n');
  await request.client.readUntil(' 204 ');
});

for (const [where, script] of Object.entries({
  'with a held header section': { decodeHeaders: 'stop' },
  'with a held body': { decodeData: 'buffer' },
})) {
  t.test(`a request above the limit, ${where}, is answered with 413`, async (t) => {
    const count = (await proxy.baton.stat('http.main.downstream_rq_too_large'))!;
    const request = await proxy.send({ b: script }, { method: 'POST', headers: LONGER, body: `${FITS}x` });
    t.match(await request.answer(), { status: 413, rest: 'Payload Too Large' });
    t.equal(await proxy.logged(request), `413 request_payload_too_large - ${LIMIT + 1} 17`);
    t.equal(await proxy.baton.stat('http.main.downstream_rq_too_large'), count + 1);
  });
}

t.test('a filter may set another limit for a request', async (t) => {
  const scripts = { a: { decodeData: '' }, b: { decodeHeaders: 'limit:4 stop' } };
  const long = await proxy.send(scripts, { method: 'POST', headers: 'content-length: 5\r\n', body: 'hello' });
  t.equal((await long.answer()).status, 413);
  const short = await proxy.send(scripts, { method: 'POST', headers: 'content-length: 4\r\n', body: 'hell' });
  await waitForBody(short, 'a decodeData');
  await short.perform('b', 'held continueDecoding');
  const host = await proxy.host(short);
  t.equal((await readWhole(host)).rest, 'hell');
});

t.test('a filter that drops its data has no limit', async (t) => {
  const request = await proxy.send(
    { a: { decodeData: '' }, b: { decodeHeaders: 'stop', decodeData: 'drop' } },
    { method: 'POST', headers: LONGER, body: `${FITS}x` },
  );
  await waitForBody(request, 'a decodeData');
  await request.perform('b', 'held reply:202');
  t.equal((await request.answer()).status, 202);
  t.ok((await request.events()).includes('b held 0 0'));
});

t.test('a response of exactly the limit can be held', async (t) => {
  const request = await proxy.send({ b: { encodeHeaders: 'stop' }, c: { encodeData: '' } });
  const host = await proxy.host(request);
  host.write(`HTTP/1.1 200 OK\r\nconnection: close\r\n${LENGTH}\r\n${FITS}`);
  await waitForBody(request, 'c encodeData');
  await request.perform('b', 'held continueEncoding');
  t.ok((await request.answer()).rest === FITS);
  t.ok((await request.events()).includes(`b held 0 ${LIMIT}`));
});

t.test('a response above the limit with a held header section becomes a 500', async (t) => {
  const count = (await proxy.baton.stat('http.main.rs_too_large'))!;
  const request = await proxy.send({ a: { encodeHeaders: '' }, b: { encodeHeaders: 'stop' } });
  const host = await proxy.host(request);
  host.write(`HTTP/1.1 200 OK\r\n${LONGER}\r\n${FITS}x`);
  t.match(await request.answer(), { status: 500, rest: 'Internal Server Error' });
  t.equal(await proxy.logged(request), '500 response_payload_too_large - 0 21');
  t.equal(await proxy.baton.stat('http.main.rs_too_large'), count + 1);
  t.same(await request.events(), ['b encodeHeaders 200', 'a onDestroy', 'b onDestroy'], 'it bypasses the filters');
});

t.test('a response above the limit is aborted when its header section was sent', async (t) => {
  const request = await proxy.send({ b: { encodeData: 'buffer' } });
  const host = await proxy.host(request);
  host.write(`HTTP/1.1 200 OK\r\n${LONGER}\r\n${FITS}x`);
  const { text, closed } = await request.client.readToEnd();
  t.not(closed, 'open');
  t.match(parseMessage(text), { status: 200, rest: '' });
  t.equal(await proxy.logged(request), '200 response_payload_too_large - 0 0');
});

t.test('a local reply above the limit becomes a 500 too', async (t) => {
  const request = await proxy.send({ a: { encodeHeaders: 'stop' }, b: { decodeHeaders: `reply:403:${LIMIT + 1}` } });
  t.match(await request.answer(), { status: 500, rest: 'Internal Server Error' });
  t.equal(await proxy.logged(request), '500 response_payload_too_large - 0 21');
});

t.test('tunnel bytes held above the limit close the tunnel', async (t) => {
  const upgrade = 'connection: upgrade\r\nupgrade: websocket\r\n';
  const request = await proxy.send({ b: { decodeData: 'buffer' } }, { headers: upgrade });
  const host = await proxy.host(request);
  host.write(`HTTP/1.1 101 Switching Protocols\r\n${upgrade}\r\n`);
  await request.client.readUntil('\r\n\r\n');
  request.client.write(`${FITS}x`);
  t.not((await request.client.readToEnd()).closed, 'open');
  t.equal(await proxy.logged(request), `101 request_payload_too_large - ${LIMIT + 1} 0`);
});

t.test('no exception was logged', async (t) => {
  t.equal(proxy.faults, 0, proxy.baton.stderr);
});

/** Waits until a filter has seen the end of a body. */
function waitForBody({ events }: ScriptedRequest, callback: string): Promise<unknown> {
  const isEnd = (event: string) => event.startsWith(callback) && event.endsWith(' end');
  return waitFor(async () => (await events()).some(isEnd), { what: `the end of the body in ${callback}` });
}
