// Header blocks: fields are found, changed and retained beyond the turn, without unnecessary copies.

import t from 'tap';
import { HeaderSet, headerKey, knownHeader } from '../../../src/common/text/header-names.js';
import { HeadKind } from '../../../src/http/h1/head/head-parser.js';
import { HeadReader } from '../../../src/http/h1/head/head-reader.js';
import { KnownFields } from '../../../src/http/h1/head/known-fields.js';
import { HeaderBlock, HeaderBlockPool, Method } from '../../../src/http/headers/header-block.js';
import { Memory } from '../../../src/io/memory.js';

const LIMITS = { maxHeadBytes: 60 * 1024, maxHeaders: 100 };
const LAYOUT = { receiveBytes: 65536, scratchBytes: 65536, arenaBytes: 4 * 1024 * 1024 };

const HEAD = [
  'GET /a?b HTTP/1.1',
  'Host: example.com',
  'Accept: text/html',
  'X-Custom: one',
  'Cookie: a=1',
  'x-custom: two',
  'Cookie: b=2',
];

function parsed(memory: Memory, lines = HEAD): HeaderBlock {
  const text = `${lines.join('\r\n')}\r\n\r\n`;
  for (let i = 0; i < text.length; i++) memory.bytes[100 + i] = text.charCodeAt(i);
  const block = new HeaderBlock(memory);
  const end = new HeadReader(memory, new KnownFields(memory)).read(
    HeadKind.Request,
    block,
    100,
    100 + text.length,
    LIMITS,
  );
  if (end !== 100 + text.length) throw new Error(`not parsed: ${end}`);
  return block;
}

function lines(block: HeaderBlock): string[] {
  const found = [];
  for (let i = 0; i < block.size; i++) if (!block.isRemoved(i)) found.push(`${block.name(i)}: ${block.value(i)}`);
  return found;
}

/** Ends the turn as the transport does, and overwrites invalid memory. */
function endTurn(memory: Memory): void {
  memory.bytes.fill(0xee, 0, memory.scratch(0));
  memory.endTurn();
}

t.test('known and other names are found without regard to case, in order', (t) => {
  const block = parsed(new Memory(LAYOUT));
  t.equal(block.methodText(), 'GET');
  t.equal(block.method, Method.Get);
  t.equal(block.pathText(), '/a?b');
  t.equal(block.get(headerKey('HOST')), 'example.com');
  t.equal(block.get(headerKey('x-CUSTOM')), 'one');
  const first = block.find(headerKey('x-custom'));
  t.equal(block.value(block.find(headerKey('x-custom'), first + 1)), 'two');
  t.equal(block.find(headerKey('x-custo')), -1);
  t.equal(block.findId(knownHeader('te')), -1);
  const cookie = block.findId(knownHeader('cookie'));
  t.equal(block.value(block.findId(knownHeader('cookie'), cookie + 1)), 'b=2');
  t.equal(block.findId(knownHeader('cookie'), block.size), -1);
  t.end();
});

t.test('fields are added, replaced and removed', (t) => {
  const block = parsed(new Memory(LAYOUT));
  block.set(headerKey('Cookie'), 'c=3');
  block.add(headerKey('x-new'), 'caf\xe9');
  t.equal(block.remove(headerKey('x-custom')), true);
  t.equal(block.remove(headerKey('x-custom')), false);
  t.same(lines(block), ['host: example.com', 'accept: text/html', 'cookie: c=3', 'x-new: caf\xe9']);
  block.setPath('/longer/than/before?x');
  block.setMethod(Method.Post, 'POST');
  t.equal(`${block.methodText()} ${block.pathText()}`, 'POST /longer/than/before?x');
  t.equal(block.startLineEnd, block.startLineStart, 'the start line is not forwarded unchanged');
  t.end();
});

t.test('a message has one content-length', (t) => {
  const block = parsed(new Memory(LAYOUT));
  const key = headerKey('Content-Length');
  block.add(key, '5');
  t.throws(() => block.add(key, '5'), { message: 'a message has one content-length: set() replaces it' });
  block.set(key, '6');
  t.equal(block.get(key), '6');
  block.remove(key);
  block.add(key, '7');
  t.equal(lines(block).at(-1), 'content-length: 7');
  t.end();
});

for (const [name, change] of [
  ['as it was received', () => {}],
  ['after a new path', (block: HeaderBlock) => block.setPath('/new')],
  [
    'after removals and additions',
    (block: HeaderBlock) => {
      block.removeId(knownHeader('accept'));
      block.add(headerKey('x-added'), '1');
      block.removeAt(0);
      block.add(headerKey('x-more'), '2');
    },
  ],
  [
    'after everything was removed',
    (block: HeaderBlock) => {
      for (let i = 0; i < block.size; i++) block.removeAt(i);
    },
  ],
] as const) {
  t.test(`a retained header section is unchanged in later turns: ${name}`, (t) => {
    const memory = new Memory(LAYOUT);
    const block = parsed(memory);
    change(block);
    const before = [block.methodText(), block.pathText(), ...lines(block)];
    t.equal(block.retain(), true);
    endTurn(memory);
    t.same([block.methodText(), block.pathText(), ...lines(block)], before);

    block.add(headerKey('x-later'), 'a'.repeat(3000));
    block.setPath('/later');
    block.add(headerKey('x-last'), 'z');
    endTurn(memory);
    t.same(lines(block), [...before.slice(2), `x-later: ${'a'.repeat(3000)}`, 'x-last: z']);
    t.equal(block.pathText(), '/later');
    block.clear();
    t.equal(memory.retainedBytes(), 0);
    t.end();
  });
}

t.test('without memory in the arena retain() returns false and changes nothing', (t) => {
  const memory = new Memory({ ...LAYOUT, arenaBytes: 65536 });
  const block = parsed(memory);
  while (memory.retain(1) !== 0);
  t.equal(block.retain(), false);
  t.equal(block.hold(), false);
  t.equal(block.get(headerKey('host')), 'example.com');
  t.end();
});

t.test('a pool reuses a block in a later step only, and empty', (t) => {
  const memory = new Memory(LAYOUT);
  const pool = new HeaderBlockPool(memory);
  const block = pool.take();
  block.add(headerKey('a'), 'b');
  block.drop();
  t.not(pool.take(), block);
  t.same(lines(block), ['a: b'], 'it is readable until the step ends');
  memory.step++;
  const again = pool.take();
  t.equal(again, block);
  t.equal(again.size, 0);
  t.equal(again.get(headerKey('a')), undefined);
  t.end();
});

t.test('a reused block has no state of its previous message', (t) => {
  const memory = new Memory(LAYOUT);
  const pool = new HeaderBlockPool(memory);
  const plain = (block: HeaderBlock) => Object.entries(block).filter(([name]) => name !== 'memory');
  const empty = plain(new HeaderBlock(memory));
  t.ok(empty.length > 15, 'the state is in plain properties');
  const block = pool.take();
  const other = { number: 7, boolean: true, string: 'https' } as const;
  for (const [name, value] of empty) Object.assign(block, { [name]: other[typeof value as keyof typeof other] });
  const names = ['te', 'x-forwarded-client-cert'] as const;
  for (const name of names) block.add(headerKey(name), 'a');
  block.drop();
  memory.step++;
  const again = pool.take();
  t.equal(again, block);
  t.same(plain(again), empty);
  for (const name of names) t.notOk(again.mayHave(knownHeader(name)), name);
  t.end();
});

t.test('a held block stays until its holder drops it, each time it is used', (t) => {
  const memory = new Memory(LAYOUT);
  const pool = new HeaderBlockPool(memory);
  const block = pool.take();
  for (const value of ['first', 'second']) {
    block.add(headerKey('a'), value);
    t.equal(block.hold(), true);
    block.drop();
    memory.step++;
    t.not(pool.take(), block);
    t.same(lines(block), [`a: ${value}`]);
    block.drop();
    memory.step++;
    t.equal(pool.take(), block);
    t.equal(memory.retainedBytes(), 0);
  }
  t.end();
});

t.test('additions to a retained header section, and removals before, do not touch adjacent memory', (t) => {
  const memory = new Memory(LAYOUT);
  const block = parsed(memory, [...HEAD, `X-Large: ${'a'.repeat(3000)}`, 'X-Last: b']);
  block.remove(headerKey('x-large'));
  const neighbours = Array.from({ length: 4 }, () => memory.retain(100));
  block.retain();
  neighbours.push(...Array.from({ length: 4 }, () => memory.retain(100)));
  for (const at of neighbours) memory.bytes.fill(0, at, at + memory.blockSize(at));
  for (let i = 0; i < 3000; i++) block.writeText('x');
  for (const at of neighbours) t.ok(memory.bytes.subarray(at, at + memory.blockSize(at)).every((byte) => byte === 0));
  t.equal(block.get(headerKey('x-last')), 'b');
  t.end();
});

t.test('a set of names is found regardless of their ids', (t) => {
  const block = new HeaderBlock(new Memory(LAYOUT));
  const [low, high] = [headerKey('te'), headerKey('x-envoy-ip-tags')];
  t.notOk(block.mayHaveOneOf(new HeaderSet([low, high])));
  block.add(high, 'a');
  t.ok(block.mayHaveOneOf(new HeaderSet([low, high])));
  t.notOk(block.mayHaveOneOf(new HeaderSet([low])));
  t.end();
});

t.test('a block grows beyond its initial number of fields', (t) => {
  const block = new HeaderBlock(new Memory(LAYOUT));
  for (let i = 0; i < 300; i++) block.add(headerKey(`x-${i}`), String(i));
  t.equal(block.get(headerKey('x-299')), '299');
  t.end();
});

t.test('line breaks, and characters that are not bytes, are refused', (t) => {
  const block = parsed(new Memory(LAYOUT));
  const before = lines(block);
  for (const value of ['a\rb', 'a\nb', 'a\0b', 'a\u010ab']) {
    t.throws(() => block.add(headerKey('x-new'), value), { message: /^invalid value of x-new: / });
    t.throws(() => block.setPath(`/${value}`), { message: /^invalid value of a path: / });
  }
  for (const path of ['', 'a', 'http://a/', '**', '?a', '/a b', '/a\tb', '/a\x7f', '/a#b', JSON.parse('null')]) {
    t.throws(() => block.setPath(path), { message: /^invalid value of a path: / });
  }
  for (const value of [5, null, undefined, ['a']]) {
    t.throws(() => block.set(headerKey('x-new'), value as never), { message: /^invalid value of x-new: / });
  }
  t.throws(() => block.setMethod(Method.Get, 'GET '), { message: 'invalid value of a method: "GET "' });
  for (const [method, text] of [
    [Method.Get, 'HEAD'],
    [Method.Other, 'HEAD'],
    [Method.Head, 'PURGE'],
  ] as const) {
    t.throws(() => block.setMethod(method, text), {
      message: /^the method '(HEAD|PURGE)' does not match the given Method/,
    });
  }
  t.same(lines(block), before);
  t.equal(block.pathText(), '/a?b');
  block.setPath('*');
  t.equal(block.pathText(), '*');
  block.setTarget('a');
  t.equal(block.pathText(), 'a');
  block.setMethod(Method.Connect, 'CONNECT');
  block.setPath('host:443');
  t.equal(block.pathText(), 'host:443');
  block.add(headerKey('x-new'), 'a\tb\xff');
  t.equal(block.get(headerKey('x-new')), 'a\tb\xff');
  t.end();
});
