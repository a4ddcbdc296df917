// Messages of the .proto files in src/config/protos can be configured like Envoy's own, whoever refers to them.

import { cpSync, mkdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { packagePath } from '../../../src/common/package/package-root.js';
import { type Teardown, tempDir } from '../../e2e/harness/index.js';

const { loadProtos } = await import(packagePath('scripts/schema/protos.mjs'));
const { bundleOf } = await import(packagePath('scripts/schema/bundle.mjs'));
const { typesOf } = await import(packagePath('scripts/schema/types.mjs'));

const PROTO = `
syntax = "proto3";
package acme;
import "udpa/annotations/sensitive.proto";
import "validate/validate.proto";
message Keys {
  message Client {
    string name = 1 [(validate.rules).string = {min_len: 1}];
    string secret = 2 [(udpa.annotations.sensitive) = true];
  }
  repeated Client clients = 1;
}
`;

t.test('a message that nothing refers to is in the schema, with its rules and its type', async (t) => {
  const bundle = bundleOf(loadProtos(checkoutWith(t, PROTO)));
  t.match(bundle.nested.acme?.nested.Keys, {
    fields: { clients: { rule: 'repeated', type: '.acme.Keys.Client' } },
    nested: {
      Client: {
        fields: {
          name: { options: { rules: { string: { min_len: 1 } } } },
          secret: { options: { sensitive: true } },
        },
      },
    },
  });
  t.match(typesOf(bundle), "readonly 'acme.Keys': Keys;");
});

for (const [text, message] of [
  ['message Keys { string a = 1 }', "src/config/protos/acme/keys.proto: illegal token '}', ';' expected (line 3)"],
  ['message Keys { Strin a = 1; }', "no such Type or Enum 'Strin' in Type .acme.Keys"],
  [
    'import "validate/validat.proto";',
    "src/config/protos/acme/keys.proto: there is no 'validate/validat.proto' to import",
  ],
  ['message Keys { string a = 1; string b = 1; }', 'src/config/protos/acme/keys.proto: duplicate id 1 in Type Keys'],
] as const) {
  t.test(`a mistake is told with its place: ${message}`, async (t) => {
    const root = checkoutWith(t, `syntax = "proto3";\npackage acme;\n${text}\n`);
    t.throws(() => loadProtos(root), { message });
  });
}

t.test('a rule that would not be obeyed is refused', async (t) => {
  const fields = [
    'string a = 1 [(validate.rules).string = {min_length: 1}];',
    'uint32 b = 2 [(validate.rules).string.min_len = 1];',
    'uint32 c = 3 [(validte.rules).uint32.gt = 1];',
    'repeated string d = 4 [(validate.rules).repeated = {min_items: 1, items: {string: {len_bytes: 1}}}];',
    // Right are:
    'google.protobuf.UInt32Value e = 5 [(validate.rules).uint32 = {gt: 1}, (validate.rules).message.required = true];',
    'map<string, bytes> f = 6 [(validate.rules).map = {keys: {string: {min_len: 1}}, values: {bytes: {min_len: 1}}}];',
  ];
  const root = checkoutWith(t, `syntax = "proto3";\npackage acme;\nmessage Keys { ${fields.join('\n')} }\n`);
  t.throws(() => loadProtos(root), {
    message: [
      "a: the rule 'string.min_length' is not implemented",
      "b: rules of 'string' do not fit it: it is of 'uint32'",
      "c: Baton does not know the option '(validte.rules)'",
      "d: the rule 'string.len_bytes' is not implemented",
    ]
      .map((mistake) => `src/config/protos/acme/keys.proto: acme.Keys.${mistake}`)
      .join('\n'),
  });
});

/** The root of a checkout that has this file beside those of Baton. */
function checkoutWith(t: Teardown, text: string): string {
  const root = tempDir(t);
  const protos = join(root, 'src/config/protos');
  cpSync(packagePath('src/config/protos'), protos, { recursive: true });
  // A checkout may have some in this package, as docs/extending.md shows it.
  rmSync(join(protos, 'acme'), { recursive: true, force: true });
  mkdirSync(join(protos, 'acme'));
  writeFileSync(join(protos, 'acme/keys.proto'), text);
  symlinkSync(packagePath('node_modules'), join(root, 'node_modules'));
  return root;
}
