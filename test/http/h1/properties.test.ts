// Invariants for any bytes: where they are split changes nothing, nothing throws, and nothing is retained afterwards.

import fc from 'fast-check';
import t from 'tap';
import { MAX_BLOCK_BYTES, type Memory } from '../../../src/io/memory.js';
import { ClientPeer, ServerPeer } from './peers.js';
import { pieces } from './wire.js';

const TOKEN = fc.stringMatching(/^[!#$%&'*+.^_`|~A-Za-z0-9-]{1,20}$/);
const VALUE = bytesUpTo(60, (byte) => byte === 9 || (byte >= 32 && byte !== 127));
const PATH = bytesUpTo(40, (byte) => byte > 35 && byte !== 127).map((rest) => `/${rest}`);
const BODY = bytesUpTo(200);

const FIELD = fc.oneof(
  { weight: 6, arbitrary: fc.tuple(TOKEN, VALUE).map(([name, value]) => `${name}: ${value}\r\n`) },
  {
    weight: 1,
    arbitrary: fc.constantFrom(
      'Connection: close\r\n',
      'Connection: keep-alive, Upgrade\r\n',
      'Upgrade: websocket\r\n',
      'Expect: 100-continue\r\n',
      'Content-Length: 3\r\n',
      'Transfer-Encoding: chunked\r\n',
      'Host: other\r\n',
    ),
  },
);
const FIELDS = fc.array(FIELD, { maxLength: 8 }).map((fields) => fields.join(''));

/** Returns text of allowed bytes: any by default. */
function bytesUpTo(maxLength: number, isAllowed: (byte: number) => boolean = () => true): fc.Arbitrary<string> {
  const allowed = Array.from({ length: 256 }, (_, byte) => byte).filter(isAllowed);
  return fc.array(fc.constantFrom(...allowed), { maxLength }).map((bytes) => String.fromCharCode(...bytes));
}

/** A body with its framing fields. */
const FRAMED = fc.oneof(
  fc.constant({ fields: '', body: '' }),
  BODY.map((body) => ({ fields: `Content-Length: ${body.length}\r\n`, body })),
  fc.tuple(fc.array(BODY, { maxLength: 4 }), FIELDS, fc.boolean()).map(([chunks, trailers, extends_]) => ({
    fields: 'Transfer-Encoding: chunked\r\n',
    body: `${chunks
      .filter((data) => data !== '')
      .map((data) => `${data.length.toString(16)}${extends_ ? ';a="b c"' : ''}\r\n${data}\r\n`)
      .join('')}0\r\n${trailers}\r\n`,
  })),
);
const METHOD = fc.constantFrom('GET', 'POST', 'HEAD', 'PUT', 'OPTIONS', 'PATCH', 'REPORT');
const REQUEST = fc
  .tuple(
    METHOD,
    fc.oneof(
      PATH,
      PATH.map((path) => `http://example.com:1${path}`),
    ),
    FIELDS,
    FRAMED,
    fc.constantFrom(0, 1, 1, 1),
  )
  .map(
    ([method, path, fields, framed, minor]) =>
      `${method} ${path} HTTP/1.${minor}\r\nHost: x\r\n${fields}${framed.fields}\r\n${framed.body}`,
  );
const RESPONSE = fc
  .tuple(fc.constantFrom(100, 103, 200, 204, 304, 404, 599), FIELDS, FRAMED)
  .map(([status, fields, framed]) => `HTTP/1.1 ${status} Some Reason\r\n${fields}${framed.fields}\r\n${framed.body}`);

/** A position in a text. Random doubles would nearly all be close to 0. */
const SHARE = fc.nat(1000).map((thousandths) => thousandths / 1000);

/** Returns valid bytes with a few changes. */
function mutated(bytes: fc.Arbitrary<string>): fc.Arbitrary<string> {
  const special = fc.constantFrom(
    '\r',
    '\n',
    '\0',
    ' ',
    '\t',
    ':',
    ',',
    ';',
    '\r\n',
    '\x7f',
    '\xff',
    '0',
    '5',
    '-',
    'A',
  );
  const change = fc.tuple(SHARE, fc.nat(3), fc.oneof(special, BODY));
  return fc.tuple(bytes, fc.array(change, { minLength: 1, maxLength: 4 })).map(([text, changes]) => {
    for (const [place, removed, inserted] of changes) {
      const at = Math.floor(place * text.length);
      text = text.slice(0, at) + inserted + text.slice(at + removed);
    }
    return text;
  });
}

const CONVERSATION = fc.array(REQUEST, { minLength: 1, maxLength: 4 }).map((parts) => parts.join(''));
const RESPONSES = fc.array(RESPONSE, { minLength: 1, maxLength: 3 }).map((parts) => parts.join(''));
const GARBAGE = fc.oneof(
  bytesUpTo(300),
  fc
    .array(
      fc.constantFrom('GET ', '/', ' HTTP/1.1', '\r\n', 'Host: x', ':', ' ', '0', '\r', '\n', 'HTTP/1.1 200 OK', 'a'),
      { maxLength: 40 },
    )
    .map((parts) => parts.join('')),
);
const CUTS = fc.array(SHARE, { maxLength: 12 });

type Hindrance = 'none' | 'pauses' | 'shortages';

/** Returns what a server and its peer saw when `parts` arrived and every request was answered at once. */
function served(parts: string[], hindrance: Hindrance): unknown {
  const peer = new ServerPeer({ acceptHttp10: true });
  peer.onRequest = () => peer.answer({ start: '200', fields: [['content-length', '2']] }, 'ok');
  peer.onNoRoom = () => true;
  for (const part of parts) {
    if (hindrance === 'pauses') peer.turn(() => peer.codec.hasStream && peer.codec.pauseReading());
    const taken = hindrance === 'shortages' ? crowd(peer.wire.memory) : [];
    peer.receive(part);
    for (const block of taken) peer.wire.memory.release(block);
    if (hindrance === 'pauses') peer.turn(() => peer.codec.resumeReading());
    if (hindrance === 'shortages') makeRoom(peer);
  }
  peer.turn(() => peer.codec.end());
  const result = { events: peer.journal.take(), sent: peer.wire.take() };
  peer.turn(() => peer.codec.destroy());
  return { ...result, kept: peer.wire.memory.retainedBytes() };
}

/** Uses so much memory, in few blocks, that header sections must wait. */
function crowd(memory: Memory): number[] {
  const taken: number[] = [];
  for (let length = MAX_BLOCK_BYTES; length > 32_768; length >>= 1) {
    while (!memory.pressure.isCrowded && length < memory.pressure.room + 2 * 65_536) taken.push(memory.retain(length));
  }
  if (!memory.pressure.isCrowded) throw new Error('memory is not crowded');
  return taken;
}

function makeRoom(peer: ServerPeer): void {
  peer.turn(() => {});
  const isWaiting = peer.codec.isAwaitingRoom;
  if (isWaiting) waits++;
  peer.turn(() => isWaiting && peer.codec.resumeHead());
  if (peer.codec.isAwaitingRoom) throw new Error('it waits although there is room');
}

/** How often a header section has waited. */
let waits = 0;

/**
 * Returns what the client of one request saw; with `pauses`, parts arrive while it is paused, and the close with the last one.
 */
function fetched(method: string, parts: string[], pauses: boolean): unknown {
  const peer = new ClientPeer();
  peer.turn(() => peer.request({ start: `${method} /`, fields: [] }, undefined, true));
  for (const [index, part] of parts.entries()) {
    if (pauses) peer.turn(() => peer.codec.hasStream && peer.codec.pauseReading());
    peer.receive(part);
    if (pauses && index === parts.length - 1) peer.turn(() => peer.codec.end());
    if (pauses) peer.turn(() => peer.codec.resumeReading());
    if (!peer.codec.hasStream && peer.codec.bufferedBytes > 0) throw new Error('bytes are left for the next request');
  }
  if (!pauses) peer.turn(() => peer.codec.end());
  const events = peer.journal.take();
  peer.turn(() => peer.codec.destroy());
  return { events, kept: peer.wire.memory.retainedBytes() };
}

/** How an exchange, and the bytes after it, end. */
const SURPLUS = new Set(['reusable', 'used up', 'protocol error http1.codec_error', 'ended']);
const RUNS = { numRuns: 1500 };
const HINDRANCE = fc.constantFrom<Hindrance>('none', 'pauses', 'shortages');

for (const [name, bytes] of [
  ['valid requests', CONVERSATION],
  ['mutated requests', mutated(CONVERSATION)],
  ['garbage', GARBAGE],
] as const) {
  t.test(`${name}: splits, pauses and memory shortages change nothing for a server`, (t) => {
    waits = 0;
    fc.assert(
      fc.property(bytes, CUTS, HINDRANCE, (text, cuts, hindrance) => {
        const whole = served([text], 'none') as { kept: number };
        if (whole.kept !== 0) throw new Error('bytes are kept');
        const cut = served(pieces(text, cuts), hindrance);
        if (JSON.stringify(cut) !== JSON.stringify(whole)) {
          throw new Error(`${JSON.stringify(cut)} is not ${JSON.stringify(whole)}`);
        }
      }),
      RUNS,
    );
    t.ok(waits > 50, `heads have waited ${waits} times`);
    t.end();
  });
}

for (const [name, bytes] of [
  ['valid responses', RESPONSES],
  ['mutated responses', mutated(RESPONSES)],
  ['garbage', GARBAGE],
] as const) {
  t.test(`${name}: splits and pauses change nothing for a client`, (t) => {
    fc.assert(
      fc.property(bytes, CUTS, fc.constantFrom('GET', 'HEAD', 'POST'), fc.boolean(), (text, cuts, method, pauses) => {
        const whole = fetched(method, [text], false) as { events: string[]; kept: number };
        const cut = fetched(method, pieces(text, cuts), pauses) as { events: string[]; kept: number };
        if (whole.kept !== 0 || cut.kept !== 0) throw new Error('bytes are kept');
        // Bytes after a response are surplus of the exchange or of the idle connection, depending on the split.
        const [a, b] = [whole, cut].map(({ events }) => JSON.stringify(events.filter((event) => !SURPLUS.has(event))));
        if (a !== b) throw new Error(`${b} is not ${a}`);
      }),
      RUNS,
    );
    t.end();
  });
}
