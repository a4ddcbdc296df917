// Commands and replies are read whatever pieces they arrive in, and no sender makes the readers keep more than they have room for.

import t from 'tap';
import { HeldBytesError } from '../../../../../../src/extensions/filters/network/redis-proxy/resp/held-bytes.js';
import {
  elementsOf,
  integerOf,
  isErrorReply,
  ReplyReader,
} from '../../../../../../src/extensions/filters/network/redis-proxy/resp/reply-reader.js';
import { RequestReader } from '../../../../../../src/extensions/filters/network/redis-proxy/resp/request-reader.js';
import { RespError } from '../../../../../../src/extensions/filters/network/redis-proxy/resp/resp-scanner.js';

class Room {
  reserved = 0;
  constructor(readonly limit = Number.POSITIVE_INFINITY) {}
  reserve(bytes: number): boolean {
    if (this.reserved + bytes > this.limit) return false;
    this.reserved += bytes;
    return true;
  }
  release(bytes: number): void {
    this.reserved -= bytes;
  }
}

/** Returns the commands in `text`, which arrives in pieces of `size` bytes. */
function commands(text: string, size: number, room = new Room()): string[][] {
  const reader = new RequestReader(room);
  const found: string[][] = [];
  const bytes = Buffer.from(text, 'latin1');
  for (let at = 0; at < bytes.length; at += size) {
    // What was added becomes invalid: another piece takes its place.
    const piece = Buffer.from(bytes.subarray(at, at + size));
    reader.add(piece, 0, piece.length);
    for (let words = reader.next(); words !== undefined; words = reader.next()) {
      found.push(words.map((word) => word.toString('latin1')));
    }
    reader.keep();
    piece.fill(0);
  }
  return found;
}

function thrownBy(call: () => unknown): unknown {
  try {
    call();
  } catch (error) {
    return error;
  }
  return undefined;
}

t.test('commands, in pieces of any size', (t) => {
  const text = [
    '*2\r\n$3\r\nGET\r\n$1\r\na\r\n',
    'SET key "two words \\x41\\n"\r\n',
    '*1\r\n:1\r\n',
    '*2\r\n*1\r\n$1\r\na\r\n$1\r\nb\r\n',
    '*0\r\n',
    '+status\r\n',
    '%1\r\n+a\r\n+b\r\n',
    `*2\r\n$1\r\nx\r\n$5000\r\n${'y'.repeat(5000)}\r\n`,
    '*3\r\n$3\r\nSET\r\n$0\r\n\r\n$2\r\n\r\n\r\n',
  ].join('');
  const expected = [
    ['GET', 'a'],
    ['SET', 'key', 'two words A\n'],
    [],
    [],
    [],
    [],
    [],
    ['x', 'y'.repeat(5000)],
    ['SET', '', '\r\n'],
  ];
  for (const size of [1, 2, 3, 7, 100, 4096, text.length])
    t.strictSame(commands(text, size), expected, `${size} bytes`);
  t.end();
});

t.test('replies, in pieces of any size', (t) => {
  const replies = [
    '+OK\r\n',
    '-ERR no\r\n',
    ':-5\r\n',
    '$3\r\na\r\n\r\n',
    '$-1\r\n',
    '*2\r\n*1\r\n:1\r\n$1\r\na\r\n',
    '*-1\r\n',
    '#t\r\n',
  ];
  const bytes = Buffer.from(replies.join(''), 'latin1');
  for (let size = 1; size < bytes.length; size++) {
    const reader = new ReplyReader(new Room());
    const found: string[] = [];
    for (let at = 0; at < bytes.length; at += size) {
      const piece = Buffer.from(bytes.subarray(at, at + size));
      reader.add(piece, 0, piece.length);
      for (let reply = reader.next(); reply !== undefined; reply = reader.next()) {
        found.push(Buffer.from(reply).toString('latin1'));
      }
      reader.keep();
      piece.fill(0);
    }
    t.strictSame(found, replies, `${size} bytes`);
  }
  const of = (text: string) => Buffer.from(text);
  t.equal(integerOf(of(':-5\r\n')), -5);
  t.equal(integerOf(of('+5\r\n')), undefined);
  t.strictSame(elementsOf(of('*12\r\n…')), { count: 12, at: 5 });
  t.equal(elementsOf(of('$1\r\n')), undefined);
  t.ok(isErrorReply(of('-x\r\n')));
  t.end();
});

t.test('bytes that are not of the protocol', (t) => {
  for (const text of [
    '*a\r\n',
    '*\r\n',
    '*-2\r\n',
    '*+1\r\n',
    '*1\r\n$x\r\n',
    '*1\r\n$-2\r\n',
    '*1\r\n$1\r\nabc',
    '*1\r\n@\r\n',
    '*1048577\r\n',
    '*1048576\r\n*1048576\r\n',
    '*1\r\n$536870913\r\n',
    '*1\r\n$99999999999999999999999\r\n',
    ':x\r\n',
    '_x\r\n',
    '*1\rx',
    'get "a\r\n',
    "get 'a'b\r\n",
    `${'x'.repeat(70_000)}\r\n`,
    `+${'x'.repeat(70_000)}`,
  ]) {
    for (const size of [1, text.length]) {
      t.ok(thrownBy(() => commands(text, size)) instanceof RespError, JSON.stringify(text.slice(0, 40)));
    }
  }
  t.end();
});

t.test('deep nesting costs nothing', (t) => {
  t.strictSame(commands(`${'*1\r\n'.repeat(200_000)}$1\r\na\r\n`, 1 << 16), [[]]);
  t.end();
});

t.test('before it has authenticated, a client may send little', (t) => {
  const read = (text: string, isKnown = false, room = new Room(0)) =>
    thrownBy(() => {
      const reader = new RequestReader(room);
      for (let at = 0; at < text.length; at += 1000) {
        const piece = Buffer.from(text.slice(at, at + 1000));
        reader.add(piece, 0, piece.length);
        while (reader.next(isKnown) !== undefined);
        reader.keep();
      }
    });
  t.equal(read(`*2\r\n$4\r\nAUTH\r\n$16384\r\n${'x'.repeat(16_384)}\r\n`.repeat(100)), undefined);
  for (const text of [
    `*2\r\n$4\r\nAUTH\r\n$100000\r\n${'x'.repeat(33_000)}`,
    `AUTH ${'x'.repeat(33_000)}`,
    `*11\r\n${'$1\r\na\r\n'.repeat(11)}`,
    '*1\r\n'.repeat(20_000),
  ]) {
    t.ok(read(text) instanceof RespError, text.slice(0, 20));
    t.notOk(read(text, true, new Room(1e6)) instanceof RespError, text.slice(0, 20));
  }
  t.end();
});

t.test('the words of a command that arrives are reserved besides its bytes', (t) => {
  const room = new Room();
  const reader = new RequestReader(room);
  const piece = Buffer.from(`*100000\r\n${'$0\r\n\r\n'.repeat(50_000)}`);
  reader.add(piece, 0, piece.length);
  t.equal(reader.next(), undefined);
  reader.keep();
  t.ok(room.reserved >= piece.length + 50_000 * 16, `${room.reserved}`);
  reader.add(piece, 9, piece.length - 9);
  t.equal(reader.next()?.length, 100_000);
  reader.keep();
  t.equal(room.reserved, 0);
  const full = new Room(400_000);
  const other = new RequestReader(full);
  other.add(piece, 0, piece.length);
  t.ok(thrownBy(() => other.next()) instanceof HeldBytesError);
  other.clear();
  t.equal(full.reserved, 0);
  t.end();
});

t.test('what has not arrived as a whole is bounded, and its room is released', (t) => {
  const room = new Room(300_000);
  const head = '*2\r\n$3\r\nSET\r\n$1000000\r\n';
  const thrown = thrownBy(() => commands(head + 'x'.repeat(900_000), 16_384, room));
  t.ok(thrown instanceof HeldBytesError);
  const freed = new Room(300_000);
  const reader = new RequestReader(freed);
  const piece = Buffer.from(`${head}${'x'.repeat(100_000)}`);
  reader.add(piece, 0, piece.length);
  reader.next();
  reader.keep();
  t.ok(freed.reserved >= 100_000);
  reader.clear();
  t.equal(freed.reserved, 0);
  t.end();
});
