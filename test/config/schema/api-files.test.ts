// The files that describe Envoy's API, src/config/api: their content reaches the bundle, and an invalid line fails the build.

import { cpSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { packagePath } from '../../../src/common/package/package-root.js';
import { type Teardown, tempDir } from '../../e2e/harness/index.js';

const { loadApi } = await import(packagePath('scripts/schema/api.mjs'));
const { readApi, writeApi } = await import(packagePath('scripts/schema/api-text.mjs'));
const { bundleOf } = await import(packagePath('scripts/schema/bundle.mjs'));

const TEXT = `file envoy/a/v3/a.proto unfinished

message Whole was envoy.api.v2.Whole
  repeated Whole.Part parts = 1 deprecated category envoy.filters.http rules {"repeated":{"min_items":1}}
  map<string, google.protobuf.Any> by_name = 3 sensitive
  oneof one required
    bool first = 4
    Kind second = 5 disallowed deprecated
  optional double last = 6 unfinished

message Whole.Part unfinished

enum Kind
  NONE = 0
  OTHER = 1 deprecated
`;

t.test('the bundle contains everything in a file', async (t) => {
  const types = readApi(TEXT, 'a.txt');
  const known = new Map([...types.map((type: { name: string }) => [type.name, type]), ['google.protobuf.Any', {}]]);
  t.match(bundleOf(new Map([...known].filter(([name]) => name !== 'google.protobuf.Any'))).nested.envoy.nested.a, {
    nested: {
      v3: {
        nested: {
          Whole: {
            was: 'envoy.api.v2.Whole',
            unfinished: true,
            fields: {
              parts: [
                '[]Whole.Part 1',
                { rules: { repeated: { min_items: 1 } }, deprecated: true, category: 'envoy.filters.http' },
              ],
              by_name: ['{string}google.protobuf.Any 3', { sensitive: true }],
              first: 'bool 4',
              second: ['Kind 5', { deprecated: true, disallowed: true }],
              last: ['double 6', { unfinished: true, optional: true }],
            },
            oneofs: { one: [2, 3, true] },
            nested: { Part: { fields: {}, unfinished: true } },
          },
          Kind: { values: { NONE: 0, OTHER: 1 }, valuesOptions: { OTHER: { deprecated: true } } },
        },
      },
    },
  });
});

t.test('every file has the format in which it is written', async (t) => {
  for (const name of readdirSync(packagePath('src/config/api'))) {
    const text = readFileSync(packagePath('src/config/api', name), 'utf8');
    const [, head, body] = /^((?:#[^\n]*\n)*\n)(.*)$/s.exec(text)!;
    if (/^file /.test(body!)) t.equal(`${head}${writeApi(readApi(text, name))}`, text, name);
  }
});

for (const [line, instead, mistake] of [
  [
    '  bool keep_matching = 3',
    '  bool keep_matching',
    "expected '<type> <name> = <number>' or 'oneof <name>', found 'bool keep_matching'",
  ],
  [
    '  bool keep_matching = 3',
    '  bool keep_matching = 3 depricated',
    "'depricated' is unknown here; expected deprecated, disallowed, unfinished, sensitive, category and rules",
  ],
  [
    '  bool keep_matching = 3',
    '  bool keep_matching = 1',
    'xds.type.matcher.v3.Matcher.OnMatch.keep_matching: the message has a field 1 already',
  ],
  [
    '  bool keep_matching = 3',
    '  bool matcher = 3',
    'xds.type.matcher.v3.Matcher.OnMatch.matcher: the message has a field of that name already',
  ],
  [
    '  bool keep_matching = 3',
    '  Bool keep_matching = 3',
    "xds.type.matcher.v3.Matcher.OnMatch.keep_matching: there is no type 'xds.type.matcher.v3.Bool'",
  ],
  [
    '  bool keep_matching = 3',
    '  bool keep_matching = 3 rules {"bool":{"const":true}',
    'the rules are not valid JSON: ',
  ],
  ['  bool keep_matching = 3', '  bool keep_matching = 3 rules {"bool":true,}', 'the rules are not valid JSON: '],
  [
    '  bool keep_matching = 3',
    '  bool keep_matching = 3 rules {"uint32":{"gt":1}}',
    "xds.type.matcher.v3.Matcher.OnMatch.keep_matching: rules of 'uint32' do not fit it: it is of 'bool'",
  ],
  [
    '  bool keep_matching = 3',
    '  bool keep_matching = 3 rules {"bool":{"constant":true}}',
    "xds.type.matcher.v3.Matcher.OnMatch.keep_matching: the rule 'bool.constant' is not implemented",
  ],
  ['  bool keep_matching = 3', '    bool keep_matching = 3', undefined],
  ['  bool keep_matching = 3', '   bool keep_matching = 3', "expected '<type> <name> = <number>' or 'oneof <name>'"],
  ['message Matcher.OnMatch', 'message Matcher.OnMatch\n  oneof nothing', "the oneof 'nothing' has no member"],
  [
    'message Matcher.OnMatch',
    'message Matcher',
    "'xds.type.matcher.v3.Matcher' is already described in src/config/api/xds.txt:",
  ],
  [
    'message Matcher.OnMatch',
    'mesage Matcher.OnMatch',
    "expected 'file', 'message' or 'enum' with a name, found 'mesage Matcher.OnMatch'",
  ],
  [
    'message Matcher.OnMatch',
    'enum Matcher.OnMatch',
    "expected '<NAME> = <number>' of an enum, found 'oneof on_match required'",
  ],
  ['file xds/type/matcher/v3/matcher.proto', 'file xds/type/matcher/v3/matcher', "expected 'file <path>.proto'"],
] as const) {
  t.test(`a line '${instead.trim()}'`, async (t) => {
    const root = checkout(t);
    const path = join(root, 'src/config/api/xds.txt');
    const text = readFileSync(path, 'utf8');
    t.ok(text.includes(`\n${line}\n`));
    writeFileSync(path, text.replace(`\n${line}\n`, `\n${instead}\n`));
    if (mistake === undefined) t.doesNotThrow(() => loadApi(root));
    else {
      let message = '';
      try {
        loadApi(root);
      } catch (error) {
        message = (error as Error).message;
      }
      t.match(message, /^src\/config\/api\/xds\.txt:\d+: /);
      t.ok(message.includes(mistake), message);
    }
  });
}

/** Returns the root of a checkout with the API files. */
function checkout(t: Teardown): string {
  const root = tempDir(t);
  cpSync(packagePath('src/config/api'), join(root, 'src/config/api'), { recursive: true });
  symlinkSync(packagePath('node_modules'), join(root, 'node_modules'));
  return root;
}
