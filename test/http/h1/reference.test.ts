// The codecs agree with a reference parser written from the RFCs, for any bytes and after any previous message. Many header sections
// resemble the previous one, because the codecs compare these instead of parsing them; some differ in a byte that matters.

import assert from 'node:assert/strict';
import fc from 'fast-check';
import t from 'tap';
import { ClientPeer, ServerPeer } from './peers.js';
import { type Conversation, type ReadMessage, readRequests, readResponse } from './reference-reader.js';
import { pieces } from './wire.js';

const LIMITS = { maxHeadBytes: 2000, maxHeaders: 12 };

/** Few, so that most header sections have lines in common at the same positions; some have a variant of the same length. */
const USUAL = [
  'Accept: */*',
  'Accept: a/*',
  'Accept-Encoding: gzip, deflate',
  'User-Agent: Mozilla/5.0 (X11; Linux x86_64)',
  'Cookie: secret=1',
  'Cookie: secret=2',
  'Authorization: Basic Zm9vOmJhcg==',
  'Connection: keep-alive',
  'Connection: close, x-one',
  'Connection: content-length, host',
  'X-Number: 1 ',
  'X-Number:\t2',
  'X-Empty:',
  'Expect: 100-continue',
  'Upgrade-Insecure-Requests: 1',
  `X-Long: ${'y'.repeat(200)}`,
] as const;
const ODD = [
  'Host: other',
  'host:one',
  'Content-Length: 5',
  'Content-Length: 05',
  'Content-Length:\t5',
  'Content-Length: 5, 5',
  'Content-Length: +5',
  'Content-Length: 0x5',
  'Content-Length:',
  'Content-Length: 99999999999999999999',
  'Content-Length : 5',
  'Content_Length: 5',
  'Transfer-Encoding: chunked',
  'Transfer-Encoding: Chunked ',
  'transfer-encoding:chunked',
  'Transfer-Encoding: gzip, chunked',
  'Transfer-Encoding: chunked, chunked',
  'Transfer-Encoding: identity',
  'Transfer-Encoding: \x0bchunked',
  'Transfer-Encoding : chunked',
  'Transfer-Encoding:',
  ' folded: x',
  'X-High: \xe4\xff',
  'X-Control: \x01',
  'Connection: a,b,c,d,e,f,g,h,i,j',
] as const;

const LINES = fc.array(
  fc.oneof({ weight: 40, arbitrary: fc.constantFrom(...USUAL) }, { weight: 1, arbitrary: fc.constantFrom(...ODD) }),
  { maxLength: 9 },
);
const DATA = fc.stringMatching(/^[a-z\r\n\0]{1,30}$/);
const CHUNK = fc.record({
  data: DATA,
  zeros: fc.constantFrom('', '', '00', '0'.repeat(16)),
  extension: fc.constantFrom('', '', '', ';a', ';a="b c"', ' ;a', ';\x01', '\t', ' '),
  lineEnd: fc.oneof({ weight: 30, arbitrary: fc.constant('\r\n') }, fc.constantFrom('\n', '\r', '')),
});
const FRAMED = fc.oneof(
  fc.constant({ field: [] as string[], body: '' }),
  DATA.map((body) => ({ field: [`Content-Length: ${body.length}`], body })),
  fc
    .tuple(fc.array(CHUNK, { maxLength: 3 }), fc.constantFrom('0', '0', '000', '0;x', '0 '), LINES, fc.boolean())
    .map(([chunks, last, trailers, hasTrailers]) => ({
      field: ['Transfer-Encoding: chunked'],
      body: [
        ...chunks.map(
          ({ data, zeros, extension, lineEnd }) =>
            `${zeros}${data.length.toString(16)}${extension}\r\n${data}${lineEnd}`,
        ),
        `${last}\r\n`,
        ...(hasTrailers ? trailers.map((line) => `${line}\r\n`) : []),
        '\r\n',
      ].join(''),
    })),
);

const REQUEST = fc
  .record({
    before: fc.constantFrom('', '', '', '', '\r\n'),
    method: fc.constantFrom('GET', 'GET', 'POST', 'HEAD', 'OPTIONS', 'get'),
    target: fc.constantFrom(
      '/',
      '/a?b',
      '/a',
      'http://one/',
      'HTTP://two:80?x',
      'https://three',
      '*',
      '/#a',
      'a',
      'http:/a',
    ),
    minor: fc.constantFrom('1', '1', '1', '1', '0'),
    lines: LINES,
    framed: FRAMED,
    place: fc.nat(9),
  })
  .map(({ before, method, target, minor, lines, framed, place }) => {
    const fields: string[] = ['Host: one', ...lines];
    fields.splice(place, 0, ...framed.field);
    return `${before}${method} ${target} HTTP/1.${minor}\r\n${fields.join('\r\n')}\r\n\r\n${framed.body}`;
  });
const RESPONSE = fc
  .record({
    status: fc.constantFrom(200, 200, 404, 204, 304, 100, 103),
    reason: fc.constantFrom(' OK', ' ', ''),
    minor: fc.constantFrom('1', '1', '1', '0'),
    lines: LINES,
    framed: FRAMED,
    place: fc.nat(9),
  })
  .map(({ status, reason, minor, lines, framed, place }) => {
    const fields: string[] = [...lines];
    fields.splice(place, 0, ...framed.field);
    return `HTTP/1.${minor} ${status}${reason}\r\n${fields.map((line) => `${line}\r\n`).join('')}\r\n${framed.body}`;
  });

/** Replaces a byte, or as many as one comparison covers, or a whole line with its end. */
const CHANGE = fc.record({
  place: fc.double({ min: 0, max: 1, noNaN: true }),
  kind: fc.constantFrom('replace', 'insert', 'remove', 'eight', 'line'),
  by: fc.constantFrom('\0', '\0', '\x80', '\r', '\n', ' ', '\t', '\x0b', '\x7f', '\xff', ':', ','),
});

function changed(text: string, changes: readonly { place: number; kind: string; by: string }[]): string {
  for (const { place, kind, by } of changes) {
    const at = Math.floor(place * text.length);
    const from = kind === 'eight' ? at & ~7 : kind === 'line' ? text.lastIndexOf('\r\n', at) + 2 : at;
    const lineEnd = text.indexOf('\r\n', from);
    const to =
      kind === 'eight' ? from + 8 : kind === 'line' ? Math.max(from, lineEnd + 2) : kind === 'insert' ? at : at + 1;
    const length = kind === 'remove' ? 0 : kind === 'insert' ? 1 : to - from;
    text = text.slice(0, from) + (length > 0 ? `${'\0'.repeat(length - 1)}${by}` : '') + text.slice(to);
  }
  return text;
}

/** Bare line feeds and folded lines, as old hosts send them. */
const OLD_LINES = fc.array(
  fc.record({
    place: fc.nat(12),
    by: fc.constantFrom('\n', '\r\n ', '\n\t', ' \t\r\n', ' \r\n \t ', ' \n\r\n', '\n\n'),
  }),
  { maxLength: 3 },
);

function aged(text: string, changes: readonly { place: number; by: string }[]): string {
  const lines = text.split('\r\n');
  const ends = lines.map(() => '\r\n');
  for (const { place, by } of changes) ends[place] = by;
  return lines.map((line, index) => `${line}${index < lines.length - 1 ? ends[index]! : ''}`).join('');
}

const CHANGES = fc.oneof(fc.constant([]), fc.array(CHANGE, { minLength: 1, maxLength: 2 }));
const CUTS = fc.array(fc.double({ min: 0, max: 1, noNaN: true }), { maxLength: 4 });
const RUNS = { numRuns: 12_000 };

/** Returns a conversation in common terms: the messages, whether the last one is complete, and what follows. */
function entriesOf({ messages, rest }: Conversation): string[] {
  const entries = messages.flatMap((message) => {
    const { body, end, start, trailers } = message;
    if (/^1\d\d$/.test(start)) return [`informational ${headOf(message)}`];
    const last = trailers.length > 0 ? `trailers ${described(trailers)}` : 'end';
    return [
      `headers ${headOf(message)}`,
      // A parser may report any part of the body before the error.
      ...(body === '' || end === 'invalid' ? [] : [`data ${body}`]),
      end === 'complete' ? last : end,
    ];
  });
  return rest === 'nothing' ? entries : [...entries, rest];
}

function headOf({ expectsContinue, fields, isLast, start }: ReadMessage): string {
  return [start, described(fields), expectsContinue && 'expect', isLast && 'close'].filter(Boolean).join(' ');
}

function described(fields: ReadMessage['fields']): string {
  return fields.map(([name, value]) => `${name}=${value}`).join(' ');
}

/** Returns the entries of a peer's journal in the same terms. */
function entriesIn(journal: readonly string[]): string[] {
  const entries: string[] = [];
  for (const entry of journal) {
    if (/^(?:invalid|reset protocol|reset termination)/.test(entry)) {
      // A response that the host cuts off is reset without an error.
      const isInvalid = entry !== 'reset protocol' && !entry.startsWith('reset termination');
      if (isInvalid && entries.at(-1)?.startsWith('data ')) entries.pop();
      entries.push(isInvalid ? 'invalid' : 'missing');
    } else if (!ABOUT_CONNECTION.test(entry)) entries.push(entry);
  }
  return entries;
}
/** Entries about the connection rather than a message. */
const ABOUT_CONNECTION = /^(?:idle|close|abort|reusable|used up|ended(?: too early)?|protocol error .*)$/;

function agree(actual: readonly string[], expected: string[], what: string): void {
  // An incomplete message need not be reported, but an error in it may be.
  const known = expected.filter((entry) => entry !== 'incomplete');
  const isOpen = known.length < expected.length || known.at(-1) === 'missing';
  if (isOpen && actual.at(-1) === 'invalid') {
    if (known.at(-1) === 'missing') known.pop();
    if (known.at(-1)?.startsWith('data ')) known.pop();
    known.push('invalid');
  }
  // A client that disconnects within a header section has begun a request.
  if (isOpen && actual.at(-1) === 'missing' && known.at(-1) !== 'missing') known.push('missing');
  assert.deepEqual(actual, known, what);
}

t.test('random requests are parsed like the reference', (t) => {
  let read = 0;
  const requests = fc.array(REQUEST, { minLength: 1, maxLength: 3 }).map((texts) => texts.join(''));
  fc.assert(
    fc.property(requests, CHANGES, CUTS, (text, changes, cuts) => {
      const bytes = changed(text, changes);
      const reference = readRequests(bytes, LIMITS);
      const peer = new ServerPeer({ ...LIMITS, acceptHttp10: true, allowsCustomMethods: true });
      peer.onRequest = () => peer.answer({ start: '200', fields: [['content-length', '2']] }, 'ok');
      for (const piece of pieces(bytes, cuts)) peer.receive(piece);
      peer.turn(() => peer.codec.end());
      const journal = peer.journal.take();
      peer.turn(() => peer.codec.destroy());
      agree(entriesIn(journal), entriesOf(reference), JSON.stringify(bytes));
      if (reference.rest === 'nothing') read += reference.messages.length;
    }),
    RUNS,
  );
  t.ok(read > 2000, `${read} valid requests`);
  t.end();
});

t.test('random responses are parsed like the reference', (t) => {
  let read = 0;
  let oldRead = 0;
  const responses = fc.array(RESPONSE, { minLength: 1, maxLength: 2 }).map((texts) => texts.join(''));
  fc.assert(
    fc.property(
      responses,
      fc.constantFrom('GET', 'HEAD'),
      OLD_LINES,
      CHANGES,
      CUTS,
      (text, method, old, changes, cuts) => {
        const bytes = changed(aged(text, old), changes);
        const reference = readResponse(bytes, method, LIMITS);
        const peer = new ClientPeer(LIMITS);
        peer.turn(() => peer.request({ start: `${method} /`, fields: [] }, undefined, true));
        for (const piece of pieces(bytes, cuts)) peer.receive(piece);
        peer.turn(() => peer.codec.end());
        const journal = peer.journal.take();
        peer.turn(() => peer.codec.destroy());
        const isAnswered = reference.messages.some(({ start }) => Number(start) >= 200);
        const expected = entriesOf(reference);
        if (!isAnswered && reference.rest !== 'invalid') expected.push('missing');
        agree(entriesIn(journal), expected, JSON.stringify(bytes));
        if (isAnswered) read++;
        if (isAnswered && /[^\r]\n|\n[ \t]/.test(bytes.slice(0, bytes.search(/\n\r?\n/)))) oldRead++;
      },
    ),
    RUNS,
  );
  t.ok(read > 2000, `${read} valid responses`);
  t.ok(oldRead > 200, `${oldRead} valid responses in the old syntax`);
  t.end();
});
