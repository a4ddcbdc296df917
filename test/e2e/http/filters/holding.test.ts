// Messages held by a filter: when the filter continues they reach the other side complete, in order and with the same framing,
// for every shape of message, every held part and every way to continue.

import t from 'tap';
import type { RawConnection } from '../../harness/index.js';
import { dechunk, parseMessage } from '../message.js';
import type { Script } from './scripted-filter.js';
import { type ScriptedRequest, startScriptedProxy } from './scripted-proxy.js';

const proxy = await startScriptedProxy(t);
t.afterEach(() => proxy.settle());

interface Shape {
  what: string;
  framing: string;
  /** Pieces as sent, and as filters see them; '' is the end alone. */
  pieces: readonly (readonly [sent: string, seen: string])[];
  trailers?: string;
}

const SHAPES: readonly Shape[] = [
  { what: 'without a body', framing: 'content-length: 0\r\n', pieces: [] },
  { what: 'with a body', framing: 'content-length: 5\r\n', pieces: [['hello', "'hello' end"]] },
  {
    what: 'with a body in pieces',
    framing: 'content-length: 9\r\n',
    pieces: [
      ['one', "'one'"],
      ['two', "'two'"],
      ['end', "'end' end"],
    ],
  },
  {
    what: 'with chunks and a separate end',
    framing: 'transfer-encoding: chunked\r\n',
    pieces: [
      ['3\r\none\r\n', "'one'"],
      ['3\r\ntwo\r\n', "'two'"],
      ['0\r\n\r\n', "'' end"],
    ],
  },
  {
    what: 'with trailers',
    framing: 'transfer-encoding: chunked\r\n',
    pieces: [
      ['3\r\none\r\n', "'one'"],
      ['3\r\ntwo\r\n', "'two'"],
    ],
    trailers: '0\r\nx-sum: 6\r\n\r\n',
  },
];

/** Where the filter stops; in data callbacks the last status applies to all further pieces. */
const HOLDS: Record<string, { headers: string; data: string; trailers: string }> = {
  'at the header section, with no further callbacks': { headers: 'stop', data: '', trailers: '' },
  'at the header section and at every later part': { headers: 'stop', data: 'buffer', trailers: 'stop' },
  'at the body': { headers: 'continue', data: 'buffer', trailers: 'stop' },
  'at the trailers': { headers: 'continue', data: 'continue', trailers: 'stop' },
};

const OPEN = { decode: 'decodeHeaders decodeData decodeTrailers', encode: 'encodeHeaders encodeData encodeTrailers' };

/** How the filter continues after the whole message has arrived. */
const LATER = { 'in an event of another connection': '', 'by a timer': 'soon:' };

for (const shape of SHAPES) {
  for (const [where, hold] of Object.entries(HOLDS)) {
    if (!stopsAt(hold, shape)) continue;
    for (const [when, how] of Object.entries(LATER)) {
      t.test(`a request ${shape.what}, held ${where}, continues ${when}`, async (t) => {
        const held = holding('decode', hold);
        const request = await proxy.send(
          { a: watching('decode'), b: held, c: watching('decode') },
          { method: 'POST', headers: shape.framing },
        );
        await request.sees(`a decodeHeaders /${shape.pieces.length === 0 ? ' end' : ''}`);
        await deliver(shape, request.client, request, 'a decode');
        if (hold.headers === 'stop') {
          t.same(inOrder(await request.events(), 'c'), [], 'the filters after it see nothing yet');
          t.notOk(proxy.isAtHost(request), 'neither does the host');
        }
        await request.perform('b', `${how}continueDecoding`);
        const host = await proxy.host(request);
        const { headers, rest } = parseMessage(await readMessage(host, shape));
        t.match(headers, framingOf(shape));
        t.same(contentOf(shape, rest), contentOf(shape, sent(shape)), 'the host gets all of it');
        t.same(
          inOrder(await request.events(), 'c'),
          inOrder(await request.events(), 'a'),
          'each filter sees all of it',
        );
        host.write(`HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 2\r\n\r\nok`);
        t.match(await request.client.readUntil('ok'), /^HTTP\/1\.1 200 /);
        t.equal(await proxy.logged(request), `200 via_upstream - ${bytesOf(shape)} 2`);
      });

      t.test(`a response ${shape.what}, held ${where}, continues ${when}`, async (t) => {
        const held = holding('encode', hold);
        const request = await proxy.send({ a: watching('encode'), b: held, c: watching('encode') });
        const host = await proxy.host(request);
        await host.readUntil('\r\n\r\n');
        host.write(`HTTP/1.1 200 OK\r\nconnection: close\r\n${shape.framing}\r\n`);
        await request.sees(`c encodeHeaders 200${shape.pieces.length === 0 ? ' end' : ''}`);
        await deliver(shape, host, request, 'c encode');
        if (hold.headers === 'stop') {
          t.same(inOrder(await request.events(), 'a'), [], 'the filters after it see nothing');
          t.equal(request.client.received, '', 'neither does the client');
        }
        await request.perform('b', `${how}continueEncoding`);
        const { headers, rest } = parseMessage(await readMessage(request.client, shape));
        t.match(headers, framingOf(shape));
        t.same(contentOf(shape, rest), contentOf(shape, sent(shape)), 'the client gets all of it');
        t.same(
          inOrder(await request.events(), 'a'),
          inOrder(await request.events(), 'c'),
          'each filter sees all of it',
        );
        t.equal(await proxy.logged(request), `200 via_upstream - 0 ${bytesOf(shape)}`);
      });
    }

    t.test(`a request ${shape.what}, held ${where}, continues within a callback`, async (t) => {
      const request = await proxy.send(
        { a: watching('decode'), b: continuing('decode', hold, shape) },
        { method: 'POST', headers: shape.framing },
      );
      await deliver(shape, request.client, request, 'a decode');
      const host = await proxy.host(request);
      t.same(contentOf(shape, parseMessage(await readMessage(host, shape)).rest), contentOf(shape, sent(shape)));
      host.write(`HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 2\r\n\r\nok`);
      await request.client.readUntil('ok');
      t.equal(await proxy.logged(request), `200 via_upstream - ${bytesOf(shape)} 2`);
    });

    t.test(`a response ${shape.what}, held ${where}, continues within a callback`, async (t) => {
      const request = await proxy.send({ b: continuing('encode', hold, shape), c: watching('encode') });
      const host = await proxy.host(request);
      await host.readUntil('\r\n\r\n');
      host.write(`HTTP/1.1 200 OK\r\nconnection: close\r\n${shape.framing}\r\n`);
      await deliver(shape, host, request, 'c encode');
      const { rest } = parseMessage(await readMessage(request.client, shape));
      t.same(contentOf(shape, rest), contentOf(shape, sent(shape)));
      t.equal(await proxy.logged(request), `200 via_upstream - 0 ${bytesOf(shape)}`);
    });
  }
}

t.test('data dropped by a filter is not forwarded, and all other data is', async (t) => {
  const drop = ['drop', 'continue'];
  const shape = SHAPES.at(-1)!;
  const request = await proxy.send(
    { a: watching('decode'), b: { decodeData: drop, encodeData: drop }, c: { encodeData: '' } },
    { method: 'POST', headers: shape.framing },
  );
  await deliver(shape, request.client, request, 'a decode');
  const host = await proxy.host(request);
  t.same(contentOf(shape, parseMessage(await readMessage(host, shape)).rest), {
    body: 'two',
    trailers: { 'x-sum': '6' },
  });
  host.write(`HTTP/1.1 200 OK\r\nconnection: close\r\n${shape.framing}\r\n${sent(shape)}`);
  const { rest } = parseMessage(await readMessage(request.client, shape));
  t.same(contentOf(shape, rest), { body: 'two', trailers: { 'x-sum': '6' } });
  t.equal(await proxy.logged(request), '200 via_upstream - 6 3');
});

t.test('no exception was logged', async (t) => {
  t.equal(proxy.faults, 0, proxy.baton.stderr);
});

/** A filter that records everything and holds nothing. */
function watching(direction: 'decode' | 'encode'): Script {
  return Object.fromEntries(OPEN[direction].split(' ').map((callback) => [callback, 'continue']));
}

function holding(direction: 'decode' | 'encode', hold: (typeof HOLDS)[string]): Script {
  const script: Record<string, string> = {};
  if (hold.headers !== '') script[`${direction}Headers`] = hold.headers;
  if (hold.data !== '') script[`${direction}Data`] = hold.data;
  if (hold.trailers !== '') script[`${direction}Trailers`] = hold.trailers;
  return script;
}

/** The same, but in its last callback the filter continues, and nevertheless returns a status that stops. */
function continuing(direction: 'decode' | 'encode', hold: (typeof HOLDS)[string], { pieces, trailers }: Shape): Script {
  const script = holding(direction, hold);
  const go = direction === 'decode' ? 'continueDecoding' : 'continueEncoding';
  if (hold.trailers !== '' && trailers !== undefined) return { ...script, [`${direction}Trailers`]: `${go} stop` };
  if (hold.data === '' || pieces.length === 0) return { ...script, [`${direction}Headers`]: `${go} stop` };
  const data = pieces.map((_, index) => (index === pieces.length - 1 ? `${go} buffer` : 'buffer'));
  return { ...script, [`${direction}Data`]: data };
}

/** Whether the end of a message of this shape is held. */
function stopsAt(hold: (typeof HOLDS)[string], { pieces, trailers }: Shape): boolean {
  if (hold.headers === 'stop') return true;
  if (hold.data === 'buffer' && pieces.length > 0) return true;
  return hold.trailers === 'stop' && trailers !== undefined;
}

/** Sends a message piece by piece: each waits until a filter (`watch`) has seen the previous one. */
async function deliver(
  { pieces, trailers }: Shape,
  connection: RawConnection,
  request: ScriptedRequest,
  watch: string,
): Promise<void> {
  for (const [bytes, seen] of pieces) {
    connection.write(bytes);
    await request.sees(`${watch}Data ${seen}`);
  }
  if (trailers === undefined) return;
  connection.write(trailers);
  await request.sees(`${watch}Trailers`);
}

function sent({ pieces, trailers = '' }: Shape): string {
  return pieces.map(([bytes]) => bytes).join('') + trailers;
}

async function readMessage(connection: RawConnection, shape: Shape): Promise<string> {
  const head = await connection.readUntil('\r\n\r\n');
  if (shape.framing.startsWith('content-length')) return head + (await connection.read(sent(shape).length));
  return head + (await connection.readUntil(/(^|\n)0\r\n(.+\r\n)*\r\n/));
}

function contentOf({ framing }: Shape, text: string): { body: string; trailers: Record<string, string> } {
  if (framing.startsWith('content-length')) return { body: text, trailers: {} };
  const { body, trailers } = dechunk(text);
  return { body, trailers };
}

function framingOf({ framing }: Shape): Record<string, string> {
  const [name = '', value = ''] = framing.trim().split(': ');
  return { [name]: value };
}

function bytesOf(shape: Shape): number {
  return contentOf(shape, sent(shape)).body.length;
}

/** Returns the events of a filter, with the pieces of the body joined, because they may be split differently. */
function inOrder(events: readonly string[], filter: string): { before: string; body: string; isEnded: boolean }[] {
  const seen: { before: string; body: string; isEnded: boolean }[] = [];
  let body = '';
  let isEnded = false;
  for (const event of events) {
    const [name, callback = '', ...what] = event.split(' ');
    if (name !== filter || callback === 'onDestroy') continue;
    if (isEnded) return [];
    isEnded = what.at(-1) === 'end' || callback.endsWith('Trailers');
    if (callback.endsWith('Data')) body += what[0]!.slice(1, -1);
    seen.push({ before: callback.endsWith('Data') ? '' : event.slice(2), body, isEnded });
  }
  const last = seen.at(-1);
  return [...seen.filter(({ before }) => before !== ''), ...(last === undefined ? [] : [{ ...last, before: '' }])];
}
