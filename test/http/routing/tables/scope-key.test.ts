// The scope key of a request is built from its headers as in Envoy.

import t from 'tap';
import { BatonError } from '../../../../src/common/errors/errors.js';
import { byteText } from '../../../../src/common/text/byte-text.js';
import type { ScopedRoutes_ScopeKeyBuilder_FragmentBuilder_HeaderValueExtractor as Extractor } from '../../../../src/config/generated/api.js';
import { ScopeKeyBuilder, scopeKey } from '../../../../src/http/routing/tables/scope-key.js';
import { requestHead } from '../heads.js';

function builder(...extractors: Extractor[]): ScopeKeyBuilder {
  return new ScopeKeyBuilder({
    fragments: extractors.map((header_value_extractor) => ({ header_value_extractor })),
  });
}

/** Returns the key of a request with these headers. */
function keyOf(of: ScopeKeyBuilder, ...lines: string[]): string | undefined {
  return of.keyOf(requestHead('GET /path?query', 'Host: foo.com', ...lines));
}

t.test('an element of a value is selected by its index', async (t) => {
  const second = builder({ name: 'Addr', element_separator: ';', index: 1 });
  t.equal(keyOf(second, 'addr: a;b;c'), 'b');
  t.equal(keyOf(second, 'addr: a;'), '', 'an empty element counts');
  t.equal(keyOf(second, 'addr: a'), undefined);
  t.equal(keyOf(second), undefined, 'without the header there is no key');
  t.equal(keyOf(builder({ name: 'addr', index: 0 }), 'addr: a;b'), 'a;b', 'without a separator: the whole value');
});

t.test('an element is selected by its key, and yields the text after the separator', async (t) => {
  const zone = builder({ name: 'addr', element_separator: ',', element: { separator: '=', key: 'zone' } });
  t.equal(keyOf(zone, 'addr: rack=1,zone=eu=1,zone=us'), 'eu=1');
  t.equal(keyOf(zone, 'addr: zone'), '');
  t.equal(keyOf(zone, 'addr: Zone=eu'), undefined);
});

t.test('separators, keys and values may be non-ASCII', async (t) => {
  const zone = builder({ name: 'addr', element_separator: '§', element: { separator: '→', key: 'größe' } });
  t.equal(keyOf(zone, byteText('addr: a→1§größe→€')), scopeKey(['€']));
});

t.test('pseudo-headers can be used', async (t) => {
  const fragments = [':authority', ':path', ':method'].map((name) => ({ name, index: 0 }));
  t.equal(keyOf(builder(...fragments)), scopeKey(['foo.com', '/path?query', 'GET']));
});

t.test('a key needs all of its fragments, in order', async (t) => {
  const both = builder({ name: 'a', index: 0 }, { name: 'b', index: 0 });
  t.equal(keyOf(both, 'a: 1', 'b: 2'), scopeKey(['1', '2']));
  t.not(keyOf(both, 'a: 1', 'b: 2'), scopeKey(['2', '1']));
  t.not(keyOf(both, 'a: 12', 'b: '), scopeKey(['1', '2']));
  t.equal(keyOf(both, 'a: 1'), undefined);
});

t.test('unsupported extractors are refused with their position', async (t) => {
  const whereOf = (extractor: Extractor) => {
    try {
      builder({ name: 'a', index: 0 }, extractor);
    } catch (error) {
      if (error instanceof BatonError) return error.where;
    }
    return undefined;
  };
  t.equal(whereOf({ name: 'a' }), 'fragments[1].header_value_extractor');
  t.equal(whereOf({ name: 'a', index: 1 }), 'fragments[1].header_value_extractor.index');
  t.equal(whereOf({ name: ':scheme', index: 0 }), 'fragments[1].header_value_extractor.name');
});
