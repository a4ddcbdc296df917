// xdstp names are read in linear time, whatever they contain, and equal names have equal forms.

import fc from 'fast-check';
import t from 'tap';
import { canonicalXdstp, collectionOf, formatXdstp, parseXdstp } from '../../../src/config/fields/xdstp-name.js';

t.test('parameters are sorted, decoded and encoded', async (t) => {
  t.equal(canonicalXdstp('xdstp://a/b.C/d/e?z=1&b=%20%26c&a'), 'xdstp://a/b.C/d/e?a=&b= %26c&z=1');
  t.equal(canonicalXdstp('xdstp:///b.C/*?x=%C3%BC'), 'xdstp:///b.C/*?x=%C3%BC');
  t.strictSame(parseXdstp('xdstp://a/b.C/d?x=%zz')?.parameters, new Map([['x', '%25zz']]));
  t.equal(canonicalXdstp('xdstp://a/b.C/*?a=1&a=2&b=x=y&c=%ff'), 'xdstp://a/b.C/*?a=1&b=x%3Dy&c=%FF');
  t.equal(canonicalXdstp('xdstp://ser%41ver:80/b.C/a:b/%41%2Fc/%2a'), 'xdstp://serAver:80/b.C/a:b/A/c/*');
  t.equal(canonicalXdstp('xdstp://ü%2f[~/b.C/%2/%zz%4%5b%3F'), 'xdstp://%C3%BC%2F[%7E/b.C/%252/%25zz%254%5B%3F');
});

t.test('a resource is in the collection of its folder with the same parameters', async (t) => {
  t.equal(collectionOf('xdstp://a/b.C/d/e?z=1&b=2'), 'xdstp://a/b.C/d/*?b=2&z=1');
  t.equal(collectionOf('xdstp://a/b.C/e'), 'xdstp://a/b.C/*');
  t.equal(collectionOf('xdstp://a/b.C'), 'xdstp://a/b.C/*');
});

t.test('other names', async (t) => {
  for (const name of ['', 'a', 'xdstp:', 'xdstp://a', 'xdstp://a/', 'xdstp://a/b.C/d#entry=e', 'http://a/b/c']) {
    t.equal(parseXdstp(name), undefined);
    t.equal(canonicalXdstp(name), name);
    t.equal(collectionOf(name), undefined);
  }
});

t.test('any name has one form', async () => {
  fc.assert(
    fc.property(
      fc.string({ unit: fc.constantFrom('/', '?', '&', '=', '%', '4', '1', 'a', '*', 'ü', '\n') }),
      (rest) => {
        const name = `xdstp://${rest}`;
        const form = canonicalXdstp(name);
        const parsed = parseXdstp(name);
        if (parsed === undefined) return form === name;
        return canonicalXdstp(form) === form && formatXdstp(parseXdstp(form)!) === form;
      },
    ),
  );
});

t.test('long names take no longer than they are', async (t) => {
  for (const part of ['/', '?', '&', '=', '%', 'a=', '%41', '/*']) {
    const began = performance.now();
    collectionOf(`xdstp://${part.repeat(100_000)}`);
    collectionOf(`xdstp://a/b?${part.repeat(100_000)}`);
    t.ok(performance.now() - began < 2000);
  }
});
