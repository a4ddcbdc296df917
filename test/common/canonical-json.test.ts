// Equal values have equal texts, whatever the order of their fields, and values of clients cannot exhaust the stack.

import t from 'tap';
import { canonicalJson } from '../../src/common/canonical-json.js';

t.test('fields may come in any order', async (t) => {
  const expected = canonicalJson({ b: [1, { d: null, c: true }], a: 'x' });
  t.equal(expected, '{"a":"x","b":[1,{"c":true,"d":null}]}');
  t.equal(canonicalJson(JSON.parse('{"a":"x","b":[1,{"c":true,"d":null}]}')), expected);
});

t.test('values of another kind, and texts with quotes, differ', async (t) => {
  const values = [
    1,
    '1',
    true,
    'true',
    null,
    'null',
    [],
    {},
    ['a', 'b'],
    ['a","b'],
    { a: 1 },
    ['a', 1],
    '["a","b"]',
    -1,
  ];
  t.equal(new Set(values.map((value) => canonicalJson(value as never))).size, values.length);
});

t.test('a value that is nested too deeply has no text', async (t) => {
  let list: unknown = 'x';
  let struct: unknown = 'x';
  for (let depth = 0; depth < 100_000; depth++) {
    list = [list];
    struct = { __proto__: null, a: struct };
  }
  t.equal(canonicalJson(list as never), undefined);
  t.equal(canonicalJson({ a: [struct as never] }), undefined);
});

t.test('a number that JSON does not have is not null', async (t) => {
  for (const value of [Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY]) {
    t.equal(canonicalJson(value), undefined);
    t.equal(canonicalJson({ a: [value] }), undefined);
  }
});
