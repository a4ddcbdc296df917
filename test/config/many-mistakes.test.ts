// Files with very many mistakes are refused in linear time: the mistakes shown are explained, the others counted.

import t from 'tap';
import { SecretIndex } from '../../src/config/text/secrets.js';
import { problemsOf } from './load-text.js';

const COUNT = 60_000;

t.test('the first hundred of very many mistakes are shown, and the others counted', async (t) => {
  const lines = (line: (index: number) => string) => Array.from({ length: COUNT }, (_, index) => line(index));
  const clusters = 'static_resources:\n  clusters:\n';
  const texts: [what: string, file: string, text: string, count: number][] = [
    ['unknown fields', 'a.yaml', lines((i) => `key_${i}: 1\n`).join(''), COUNT],
    ['unknown fields in JSON', 'a.json', `{${lines((i) => `"key_${i}": 1`).join(',\n')}}`, COUNT],
    ['unknown fields in a text proto', 'a.pb_text', lines((i) => `key_${i}: 1\n`).join(''), COUNT],
    ['types that the API has not', 'a.pb_text', lines((i) => `[acme.Type${i}] {}\n`).join(''), COUNT],
    ['wrong types', 'a.yaml', clusters + lines((i) => `  - ${i}\n`).join(''), COUNT],
    ['wrong values', 'a.yaml', clusters + lines((i) => `  - {name: a${i}, type: STATIK${i}}\n`).join(''), COUNT],
    ['duplicate keys', 'a.yaml', 'admin: {}\n'.repeat(COUNT + 1), COUNT],
    [
      'duplicate keys in JSON',
      'a.json',
      `{${Array(COUNT + 1)
        .fill('"admin": {}')
        .join(',\n')}}`,
      COUNT,
    ],
    ['a repeated alias', 'a.yaml', `${clusters}  - &a {type: 7}\n${'  - *a\n'.repeat(COUNT)}`, COUNT + 1],
    [
      'an alias for each anchor',
      'a.yaml',
      lines((i) => (i % 2 === 0 ? `k${i}: &a${i} [1]\n` : `k${i}: *a${i - 1}\n`)).join(''),
      COUNT,
    ],
    [
      'maps merged with the previous one',
      'a.yaml',
      lines((i) => (i === 0 ? 'k0: &a0 {b: 1}\n' : `k${i}: &a${i} {<<: *a${i - 1}}\n`)).join(''),
      COUNT,
    ],
  ];
  for (const [what, file, text, count] of texts) {
    const begun = process.cpuUsage();
    const problems = problemsOf(text, { file });
    const { user } = process.cpuUsage(begun);
    const [, further] = / and (\d+) further errors$/.exec(problems) ?? [];
    const shown = problems.match(/^a\.\w+:\d+:\d+: /gm)?.length ?? 0;
    // Each element has one more mistake: a missing name.
    t.ok(shown === 100 && Number(further) + 100 >= count, `${what}: ${shown} and ${further}`);
    if (!text.includes('clusters')) t.equal(Number(further) + 100, count, what);
    t.ok(user < 15_000_000, `${what}: ${user / 1e6} s`);
  }
});

t.test('very many syntax errors', async (t) => {
  const texts: readonly (readonly [text: string, first: RegExp])[] = [
    [`a: "${'\\q'.repeat(500_000)}"\n`, /^baton\.yaml:1:5: Invalid escape sequence \\q\n/],
    ['a: !b 1\n'.repeat(COUNT), /^baton\.yaml:1:4: Unresolved tag: !b\n/],
    [`a: [${','.repeat(500_000)}]\n`, /^baton\.yaml:1:6: Unexpected , in flow sequence\n/],
    [']'.repeat(500_000), /^baton\.yaml:1:1: Unexpected flow-seq-end token/],
    ['k: "a\n'.repeat(COUNT), /^baton\.yaml:1:\d+: Missing closing "quote\n/],
    [`node: {id: ${'9'.repeat(1_000_000)}, metadata: []}\n`, /^baton\.yaml:1:1000024: node\.metadata: expected a map/],
    [`a: ${'['.repeat(101)}${']'.repeat(101)}\n`.repeat(5000), /^baton\.yaml:1:\d+: nested deeper than 100 levels\n/],
  ];
  for (const [text, first] of texts) {
    const problems = problemsOf(text);
    t.match(problems, first);
    t.ok((problems.match(/^baton\.yaml:/gm)?.length ?? 0) <= 10, 'at most ten of them');
  }
});

t.test('messages hide secrets of any length, and any eight characters of them', async (t) => {
  const secret = Array.from({ length: 200_000 }, (_, index) => (index * 7919).toString(36)).join('');
  const index = new SecretIndex([secret, 'short', 'eightlet']);
  const piece = secret.slice(123_456, 123_464);
  t.equal(index.hide(`a ${piece} b`), 'a [redacted] b');
  t.equal(index.hide(`a ${secret.slice(1000, 1500)} b`), 'a [redacted] b');
  t.equal(index.hide(`a ${piece.slice(1)}~ b short eightlet.`), `a ${piece.slice(1)}~ b [redacted] [redacted].`);
  t.equal(index.hide('nothing of it'), 'nothing of it');
});
