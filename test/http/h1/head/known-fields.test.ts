// A header section that resembles an earlier one is parsed like the first.

import assert from 'node:assert/strict';
import fc from 'fast-check';
import t from 'tap';
import { H1Error } from '../../../../src/http/h1/errors.js';
import { HeadKind, INCOMPLETE } from '../../../../src/http/h1/head/head-parser.js';
import { HeadReader } from '../../../../src/http/h1/head/head-reader.js';
import { KnownFields } from '../../../../src/http/h1/head/known-fields.js';
import { HeaderBlock } from '../../../../src/http/headers/header-block.js';
import { ServerPeer } from '../peers.js';
import { newMemory, Wire } from '../wire.js';

const LIMITS = { maxHeadBytes: 4096, maxHeaders: 12, acceptHttp10: true };
const memory = newMemory();
const head = new HeaderBlock(memory);

/** Few lines, so that header sections have many in common; some have a variant of the same length. */
const LINE = fc.oneof(
  {
    weight: 12,
    arbitrary: fc.constantFrom(
      'Accept: */*\r\n',
      'Accept: a/*\r\n',
      'Connection: keep-alive\r\n',
      'Connection: close, x-one\r\n',
      'Upgrade: websocket\r\n',
      'Expect: 100-continue\r\n',
      'X-Number: 1 \r\n',
      'X-Number:  2\r\n',
      'X-Empty:\r\n',
      'X-Forwarded-Client-Cert: forged\r\n',
      'Cookie: secret=1\r\n',
      `X-Long: ${'x'.repeat(900)}\r\n`,
    ),
  },
  {
    weight: 1,
    arbitrary: fc.constantFrom(
      'Host: one\r\n',
      'Host: two\r\n',
      'Content-Length: 3\r\n',
      'Content-Length: 03\r\n',
      'Content-Length: x\r\n',
      'Transfer-Encoding: chunked\r\n',
      'X-Bad: \0\r\n',
      '\0'.repeat('Cookie: secret=1\r\n'.length),
    ),
  },
);
const HEAD = fc
  .tuple(
    fc.constantFrom(
      'GET / HTTP/1.1',
      'POST /a HTTP/1.1',
      'GET / HTTP/1.0',
      'HTTP/1.1 200 OK',
      'HTTP/1.1 204 No Content',
    ),
    fc.array(LINE, { maxLength: 14 }),
    fc.array(fc.nat(200), { maxLength: 3 }),
    fc.boolean(),
  )
  .map(([start, lines, cuts, hasHost]) => ({
    kind: start.startsWith('HTTP') ? HeadKind.Response : HeadKind.Request,
    text: `${start}\r\n${hasHost ? 'Host: one\r\n' : ''}${lines.join('')}\r\n`,
    cuts: [...cuts].sort((a, b) => a - b),
  }));

/** Returns what a reader makes of a header section in pieces: its result, and all of its properties. */
function read(known: KnownFields, { kind, text, cuts }: { kind: HeadKind; text: string; cuts: readonly number[] }) {
  const reader = new HeadReader(memory, known);
  head.clear();
  let result = INCOMPLETE;
  let from = 0;
  for (const to of [...cuts, text.length]) {
    if (result !== INCOMPLETE || to <= from || to > text.length) continue;
    memory.write(64, text.slice(from, to));
    result = reader.read(kind, head, 64, 64 + to - from, LIMITS);
    from = to;
  }
  const fields = Array.from({ length: head.size }, (_, index) => [
    head.id(index),
    memory.text(head.nameStart(index), head.nameEnd(index)),
    head.value(index),
    memory.text(head.nameStart(index), head.lineEnd(index)),
    head.mayHave(Math.max(head.id(index), 0)),
  ]);
  const { method, status, bodyKind, contentLength, close, upgrade, expectContinue, nominates } = head;
  reader.reset();
  memory.endTurn();
  return { result, fields, method, status, bodyKind, contentLength, close, upgrade, expectContinue, nominates };
}

t.test('a header section is parsed like the first, whatever came before', (t) => {
  const known = new KnownFields(memory);
  let lines = 0;
  fc.assert(
    fc.property(HEAD, HEAD, (one, other) => {
      // Every other line of one, so that they share many lines.
      const ofOne = one.text.split('\r\n');
      const mixed = other.text.split('\r\n').map((line, index) => (index % 2 === 1 && ofOne[index]) || line);
      for (const given of [one, one, { ...other, text: mixed.join('\r\n') }, one]) {
        const asIfFirst = read(new KnownFields(memory), given);
        assert.deepStrictEqual(read(known, given), asIfFirst);
        if (asIfFirst.result > 0) lines += asIfFirst.fields.length;
      }
    }),
    { numRuns: 1000 },
  );
  t.ok(lines > 1000, `${lines} lines of valid header sections`);
  t.end();
});

t.test('framing fields are obeyed every time, however many lines a header section has', (t) => {
  const wire = new Wire(newMemory());
  for (const count of [29, 30, 31, 40, 98]) {
    const others = Array.from({ length: count }, (_, index) => `X-${index}: ${index}\r\n`).join('');
    for (let i = 0; i < 3; i++) {
      const peer = new ServerPeer({}, wire);
      peer.receive(`POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n${others}\r\nabc`);
      const [headers, ...body] = peer.journal.take();
      t.match(headers, new RegExp(`^headers POST / host=x content-length=3 x-0=0 .* x-${count - 1}=${count - 1}$`));
      t.same(body, ['data abc', 'end'], `${count + 2} lines`);
      peer.codec.destroy();
    }
  }
  t.end();
});

t.test('the placeholder of such a line is not a line: NUL bytes in its place are refused', (t) => {
  const known = new KnownFields(memory);
  const cookie = 'Cookie: secret=1\r\n';
  const start = 'GET / HTTP/1.1\r\nHost: one\r\n';
  for (const behind of ['', 'X-A: 1\r\n']) {
    for (const nuls of ['\0'.repeat(cookie.length), `${'\0'.repeat(cookie.length - 1)}\x80`]) {
      const given = (line: string) => ({ kind: HeadKind.Request, text: `${start}${line}${behind}\r\n`, cuts: [] });
      t.ok(read(known, given(cookie)).result > 0);
      t.equal(read(known, given(nuls)).result, -H1Error.FieldValue);
    }
  }
  t.end();
});

t.test('repeated lines are known, except those that identify users', (t) => {
  const known = new KnownFields(memory);
  const lines = ['Host: x\r\n', 'Cookie: a=b\r\n', 'Accept: */*\r\n', 'X-A: 1\r\n', 'X-Api-Key: 2\r\n', 'X-B: 3\r\n'];
  const text = `GET / HTTP/1.1\r\n${lines.join('')}\r\n`;
  read(known, { kind: HeadKind.Request, text, cuts: [] });
  memory.write(64, `${lines.join('')}\r\n`);
  const end = 64 + lines.join('').length + 2;
  known.choose(HeadKind.Request, end - 64);
  const at = (line: number) => 64 + lines.slice(0, line).join('').length;
  t.equal(known.match(0, 64, end), 1);
  t.equal(known.match(1, at(1), end), 0);
  t.equal(known.match(2, at(2), end), 2);
  t.equal(known.match(2, at(2), at(4) - 1), 1);
  t.equal(known.match(4, at(4), end), 0);
  t.equal(known.match(5, at(5), end), 1);
  known.choose(HeadKind.Response, end - 64);
  t.equal(known.match(0, 64, end), 0);
  t.end();
});
