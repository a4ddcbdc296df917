// Hop-by-hop fields are removed, and framing and routing fields are not.

import t from 'tap';
import { HeadKind } from '../../../../src/http/h1/head/head-parser.js';
import { HeadReader } from '../../../../src/http/h1/head/head-reader.js';
import { KnownFields } from '../../../../src/http/h1/head/known-fields.js';
import { removeHopByHop } from '../../../../src/http/headers/edge/hop-by-hop.js';
import { HeaderBlock } from '../../../../src/http/headers/header-block.js';
import { Memory } from '../../../../src/io/memory.js';

const LIMITS = { maxHeadBytes: 60 * 1024, maxHeaders: 100 };

function request(lines: readonly string[]): HeaderBlock {
  const memory = new Memory({ receiveBytes: 4096, scratchBytes: 4096, arenaBytes: 4 * 65_536 });
  const text = `POST / HTTP/1.1\r\n${['Host: x', ...lines].join('\r\n')}\r\n\r\n`;
  for (let i = 0; i < text.length; i++) memory.bytes[i] = text.charCodeAt(i);
  const head = new HeaderBlock(memory);
  const reader = new HeadReader(memory, new KnownFields(memory));
  const end = reader.read(HeadKind.Request, head, 0, text.length, LIMITS);
  if (end !== text.length) throw new Error(`not read: ${end}`);
  return head;
}

/** Returns the remaining lines after Host. */
function remaining(lines: readonly string[], keepUpgrade = false): string[] {
  const head = request(lines);
  removeHopByHop(head, keepUpgrade);
  const found = [];
  for (let i = 0; i < head.size; i++) if (!head.isRemoved(i)) found.push(`${head.name(i)}: ${head.value(i)}`);
  if (found[0] !== 'host: x') throw new Error('without Host');
  return found.slice(1);
}

const UPGRADE = ['connection: upgrade', 'upgrade: other'];

t.test('each hop-by-hop field is removed, even alone', async (t) => {
  const fields = [
    'Connection: close',
    'Keep-Alive: timeout=5',
    'Proxy-Connection: close',
    'TE: gzip',
    'Upgrade: other',
  ];
  for (const field of fields) t.same(remaining([field, 'X-A: 1']), ['x-a: 1'], field);
  t.same(remaining([...fields, ...fields]), [], 'all of them at once, twice');
  t.same(remaining(['Connection: upgrade', 'Upgrade: other'], true), UPGRADE, 'a forwarded upgrade');
  t.same(remaining(['TE: Trailers']), ['te: Trailers']);
  t.same(remaining(['TE: gzip', 'TE: deflate, trailers']), ['te: trailers']);
});

t.test('fields named by Connection are removed', async (t) => {
  t.same(remaining(['Connection: x-a', 'X-A: 1', 'X-AB: 2', 'x-a: 3']), ['x-ab: 2'], 'in any position');
  t.same(
    remaining(['X-A: 1', 'Connection:\tx-b\t,, X-A ,', 'X-B: 2', 'Cookie: c']),
    ['cookie: c'],
    'with spaces around them',
  );
  t.same(remaining(['Connection: x-a', 'X-A: 1', 'X-B: 2', 'Connection: x-b']), [], 'in several fields');
  t.same(remaining(['Connection: connection', 'X-B: 2', 'Connection: x-b']), [], 'one of which names itself');
});

t.test('framing and routing fields, and those added by proxies, are kept even if Connection names them', async (t) => {
  const named = (name: string) => `Connection: ${name}`;
  for (const line of ['Content-Length: 3', 'Transfer-Encoding: chunked', 'TE: trailers', 'Trailer: x-sum']) {
    const [name = '', value] = line.split(': ');
    t.same(remaining([named(name), line]), [`${name.toLowerCase()}: ${value}`], name);
  }
  t.same(remaining([named('upgrade, x-a'), 'Upgrade: other', 'X-A: 1'], true), [
    'connection: upgrade, x-a',
    UPGRADE[1],
  ]);
  t.same(remaining([named('X-Forwarded-Port'), 'x-forwarded-port: 1']), ['x-forwarded-port: 1']);
  t.same(remaining([named('x-forwarded'), 'X-Forwarded: 1']), []);
});

t.test('fields named by Connection are removed once', async (t) => {
  const head = request(['Connection: close, x-a', 'X-A: 1']);
  t.ok(head.nominates);
  removeHopByHop(head, false);
  t.notOk(head.nominates);
});
