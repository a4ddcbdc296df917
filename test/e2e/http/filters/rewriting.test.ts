// Bytes that a filter adds to a body: they are inserted at the filter's position, and the message is framed by its new length.

import t from 'tap';
import { waitFor } from '../../harness/index.js';
import { dechunk, parseMessage } from '../message.js';
import { startScriptedProxy } from './scripted-proxy.js';

const LIMIT = 10_000;
const CHUNKED = 'transfer-encoding: chunked\r\n';
const proxy = await startScriptedProxy(t, { listener: { per_connection_buffer_limit_bytes: LIMIT } });
t.afterEach(() => proxy.settle());

t.test('a body is replaced piece by piece', async (t) => {
  const request = await proxy.send(
    {
      a: { decodeData: '' },
      b: {
        decodeHeaders: 'remove:content-length',
        decodeData: ['putRequest:<first> continueDecoding drop', 'putRequest:<last> continueDecoding drop'],
        encodeHeaders: 'remove:content-length',
        encodeData: ['putResponse:<first> continueEncoding drop', 'putResponse:<last> continueEncoding drop'],
      },
      c: { encodeData: '' },
    },
    { method: 'POST', headers: 'content-length: 6\r\n', body: 'one' },
  );
  await request.sees("a decodeData 'one'");
  request.client.write('two');
  const host = await proxy.host(request);
  const asked = parseMessage(await host.readUntil('0\r\n\r\n'));
  t.match(asked.headers, { 'transfer-encoding': 'chunked', 'content-length': undefined });
  t.equal(dechunk(asked.rest).body, '<first><last>');
  host.write('HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 6\r\n\r\none');
  await request.sees("c encodeData 'one'");
  host.write('two');
  const { headers, rest } = parseMessage(await request.client.readUntil('0\r\n\r\n'));
  t.match(headers, { 'transfer-encoding': 'chunked', 'content-length': undefined });
  t.equal(dechunk(rest).body, '<first><last>');
});

t.test('a dropped body is replaced as a whole, with the new content-length', async (t) => {
  const request = await proxy.send(
    {
      a: { decodeData: '' },
      b: { decodeHeaders: 'remove:content-length add:content-length:3 stop', decodeData: 'drop' },
    },
    { method: 'POST', headers: 'content-length: 5\r\n', body: 'hello' },
  );
  await request.sees("a decodeData 'hello' end");
  await request.perform('b', 'putRequest:ab putRequest:c held continueDecoding');
  t.ok((await request.events()).includes('b held 3 0'));
  const asked = parseMessage(await (await proxy.host(request)).readUntil('\r\n\r\nabc'));
  t.match(asked.headers, { 'content-length': '3' });
});

t.test('a message without a body gets one', async (t) => {
  const request = await proxy.send({
    b: { decodeHeaders: 'putRequest:hello', encodeHeaders: 'remove:content-length putResponse:there' },
    c: { decodeHeaders: '', decodeData: '' },
  });
  const host = await proxy.host(request);
  t.equal(dechunk(parseMessage(await host.readUntil('0\r\n\r\n')).rest).body, 'hello');
  t.same((await request.events()).slice(-2), ['c decodeHeaders /', "c decodeData 'hello' end"]);
  host.write('HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 0\r\n\r\n');
  t.equal(dechunk(parseMessage(await request.client.readUntil('0\r\n\r\n')).rest).body, 'there');
});

t.test('bytes are inserted before the data of the current callback', async (t) => {
  const script = (direction: string, put: string) => ({
    [`${direction}Data`]: `${put}:[`,
    [`${direction}Trailers`]: `${put}:]`,
  });
  const request = await proxy.send(
    { b: { ...script('decode', 'putRequest'), ...script('encode', 'putResponse') } },
    { method: 'POST', headers: CHUNKED, body: '3\r\none\r\n0\r\nx-sum: 6\r\n\r\n' },
  );
  const host = await proxy.host(request);
  const whole = { body: '[one]', trailers: { 'x-sum': '6' } };
  t.match(dechunk(parseMessage(await host.readUntil('x-sum: 6\r\n\r\n')).rest), whole);
  host.write(`HTTP/1.1 200 OK\r\nconnection: close\r\n${CHUNKED}\r\n3\r\none\r\n0\r\nx-sum: 6\r\n\r\n`);
  t.match(dechunk(parseMessage(await request.client.readUntil('x-sum: 6\r\n\r\n')).rest), whole);
});

t.test('inserted bytes beyond the limit are refused like received ones', async (t) => {
  const more = 'x'.repeat(LIMIT / 2 + 1);
  const long = await proxy.send({ b: { decodeHeaders: `putRequest:${more} putRequest:${more}` } });
  t.match(await long.answer(), { status: 413 });
  const answered = await proxy.send({ b: { encodeHeaders: `putResponse:${more} putResponse:${more}` } });
  (await proxy.host(answered)).write('HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 0\r\n\r\n');
  t.match(await answered.answer(), { status: 500 });
});

t.test('bytes added to a finished body are discarded', async (t) => {
  const request = await proxy.send(
    { a: { decodeData: '' }, b: { decodeHeaders: '' } },
    { method: 'POST', headers: 'content-length: 5\r\n', body: 'hello' },
  );
  await request.sees("a decodeData 'hello' end");
  await request.perform('b', 'putRequest:late putResponse:early held continueDecoding continueEncoding');
  const host = await proxy.host(request);
  t.match(await host.readUntil('hello'), /\r\n\r\nhello$/);
  host.write('HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 2\r\n\r\nok');
  t.match(await request.answer(), { status: 200, rest: 'ok' });
  t.ok((await request.events()).includes('b held 0 0'));
});

t.test('a body that does not match its content-length is aborted, and the log says why', async (t) => {
  const abortLines = () => proxy.baton.stderr.split('message aborted: its body is longer or shorter').length - 1;
  for (const length of [3, 30]) {
    const before = abortLines();
    const set = `remove:content-length add:content-length:${length}`;
    const asking = await proxy.send(
      { b: { decodeHeaders: set } },
      { method: 'POST', headers: 'content-length: 5\r\n', body: 'hello' },
    );
    t.match(await asking.answer(), { status: 503 });
    await waitFor(() => abortLines() === before + 1, { what: 'a line about the request' });
    const answered = await proxy.send({ b: { encodeHeaders: set } });
    (await proxy.host(answered)).write('HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 5\r\n\r\nhello');
    const { text, closed } = await answered.client.readToEnd();
    t.match(text, `content-length: ${length}`);
    t.not(closed, 'open');
    await waitFor(() => abortLines() === before + 2, { what: 'a line about the response' });
  }
});

t.test('no exception was logged', async (t) => {
  t.equal(proxy.faults, 0, proxy.baton.stderr);
});
