// Expressions of stats_tags in Envoy's own syntax, of which RE2 lacks a part.

import t from 'tap';
import { checkStatsConfig } from '../../../src/stats/settings/check-config.js';
import { TagExtractor } from '../../../src/stats/tags/tag-extractor.js';

const NAME = 'listener.0.0.0.0_80.http.10.0.0.1_90.downstream_rq_total';

function said(regex: string): string[] {
  const found: string[] = [];
  checkStatsConfig({ stats_config: { stats_tags: [{ tag_name: 'a', regex }] } }, (path, message) =>
    found.push(`${path}: ${message}`),
  );
  return found;
}

t.test('an expression may look ahead, and name classes of characters beside it', async (t) => {
  const regex = '^listener(?=\\.).*?\\.http\\.(([_.[:digit:]]+)\\.)';
  t.same(said(regex), []);
  const { name, tags } = new TagExtractor(false, [{ name: 'prefix', regex }]).extract(NAME);
  t.equal(name, 'listener.0.0.0.0_80.http.downstream_rq_total');
  t.match(tags, [{ name: 'prefix', value: '10.0.0.1_90' }]);
  const { tags: none } = new TagExtractor(false, [{ name: 'a', regex: '^listener(?!\\.)(.*)' }]).extract(NAME);
  t.same(none, []);
});

t.test('what neither understands is refused, and so is an expression that finds nothing', async (t) => {
  t.match(said('(?=a)(b'), [/^stats_config\.stats_tags\[0\]\.regex: invalid regular expression '\(\?=a\)\(b'/]);
  t.match(said('(?=a)([[:no:]])'), [/invalid regular expression/]);
  t.match(said(`(?=${'a'.repeat(40_000)})(b)`), [/too long/]);
  t.match(said('(?=a)b'), [/it finds no value/]);
});
