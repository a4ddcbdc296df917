// Expressions of stats_tags in ECMAScript syntax, of which RE2 lacks a part.

import t from 'tap';
import { checkStatsConfig } from '../../../src/stats/settings/check-config.js';
import { TagExtractor } from '../../../src/stats/tags/tag-extractor.js';

const NAME = 'listener.0.0.0.0_80.http.10.0.0.1_90.downstream_rq_total';

function problemsOf(regex: string): string[] {
  const found: string[] = [];
  checkStatsConfig({ stats_config: { stats_tags: [{ tag_name: 'a', regex }] } }, (path, message) =>
    found.push(`${path}: ${message}`),
  );
  return found;
}

t.test('an expression may contain a lookahead and named character classes', async (t) => {
  const regex = '^listener(?=\\.).*?\\.http\\.(([_.[:digit:]]+)\\.)';
  t.same(problemsOf(regex), []);
  const { name, tags } = new TagExtractor(false, [{ name: 'prefix', regex }]).extract(NAME);
  t.equal(name, 'listener.0.0.0.0_80.http.downstream_rq_total');
  t.match(tags, [{ name: 'prefix', value: '10.0.0.1_90' }]);
  const { tags: none } = new TagExtractor(false, [{ name: 'a', regex: '^listener(?!\\.)(.*)' }]).extract(NAME);
  t.same(none, []);
});

t.test('an expression that is invalid, too long, or has no group is refused', async (t) => {
  t.match(problemsOf('(?=a)(b'), [/^stats_config\.stats_tags\[0\]\.regex: invalid regular expression '\(\?=a\)\(b'/]);
  t.match(problemsOf('(?=a)([[:no:]])'), [/invalid regular expression/]);
  t.match(problemsOf(`(?=${'a'.repeat(40_000)})(b)`), [/too long/]);
  t.match(problemsOf('(?=a)b'), [/it has no capture group/]);
});
