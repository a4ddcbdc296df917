// Configurations with the same kind of error tens of thousands of times: the cost of one is small, but may add up.

import type { Random } from '../../src/common/random.js';
import { pick } from './mutation.js';

/** An invalid line or list element; `\0` is replaced by its number. */
const MISTAKES = [
  ...['key_\0: 1', 'static_resource\0: {}', 'admin: {}', '"\\e[3\0m": 1', 'node: [\0]', 'k\0: &a\0 [1]', 'k\0: *a'],
  ...['k\0: &a {b: *a}', '<<: *a', '<<: {b\0: 1}', 'k\0: {<<: *a, c\0: 1}', 'k\0: !b 1', 'k\0: "b', '  k\0: 1'],
  ...[
    '\tk\0: 1',
    '? k\0',
    '? {a: \0}',
    'k\0: [',
    'k\0: ]',
    'k\0: {a: 1,}',
    '---',
    '--- \0',
    '%TAG !a\0! b',
    '- \0',
    'a: b: \0',
  ],
  ...['k\0: 1e999999', 'k\0: 0x\0ffffffffffffffffffffff', 'password_\0: abcdefgh\0', 'k\0: |', 'k\0: >-', '# \0', ''],
  ...['k\0:', '!!binary k\0: 1', '*a : \0', '&a\0 k: 1', '{k\0: 1}', '[[[[[[\0]]]]]]', '\ufeffk\0: 1', 'k\0: \u0000'],
];

/** Elements of the lists in HOLDERS. */
const ELEMENTS = [
  ...['{}', '1', '[]', '*a', 'null', '{name: a}', '{name: [\0]}', '{name: a\0, foo: 1}', '{<<: *a, x\0: 1}', '"\0"'],
  ...['{name: a, type: STATIK\0}', '{nam: a\0}', '{name: a, connectTimeout: \0, connect_timeout: 1s}'],
  ...['{name: a, typed_config: {"@type": a/b\0}}', '{match: {safe_regex: {regex: "(\0"}}}', '{regex: "(a\0"}'],
];

const HOLDERS = [
  'static_resources:\n  clusters:',
  'static_resources:\n  listeners:',
  'static_resources:\n  secrets:',
  'stats_sinks:',
  'stats_config:\n  stats_tags:',
  'layered_runtime:\n  layers:',
  'node:\n  metadata:\n    a:',
];

const COUNT = 20_000;

/** A text and its file extension. */
export function repeatedMistakes(random: Random): { readonly text: string; readonly extension: string } {
  const shapes = Array.from({ length: 1 + random.below(2) }, () => pick(random, MISTAKES));
  const isList = random.below(2) === 0;
  const element = pick(random, ELEMENTS);
  const lines = isList ? ['x: &a {foo: 1}', pick(random, HOLDERS)] : random.below(2) === 0 ? ['x: &a {foo: 1}'] : [];
  for (let index = 0; index < COUNT; index++) {
    const line = isList ? `    - ${element}` : shapes[index % shapes.length]!;
    lines.push(line.replaceAll('\0', String(index)));
  }
  const separator = pick(random, ['\n', '\n', '\n', '\r\n', ', ']);
  const extension = pick(random, ['.yaml', '.yaml', '.yaml', '.json', '.pb_text']);
  const text = lines.join(separator);
  return { text: extension === '.json' ? `{${lines.join(',\n')}}` : text, extension };
}
