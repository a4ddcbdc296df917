// Messages of the .proto files in src/config/protos can be configured like Envoy's own, whatever refers to them.

import { cpSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { packagePath } from '../../../src/common/package/package-root.js';
import { type Teardown, tempDir } from '../../e2e/harness/index.js';

const { loadApi } = await import(packagePath('scripts/schema/api.mjs'));
const { bundleOf } = await import(packagePath('scripts/schema/bundle.mjs'));
const { typesOf } = await import(packagePath('scripts/schema/types.mjs'));

const PROTO = `
syntax = "proto3";
package acme;
import "envoy/type/v3/percent.proto";
import "google/protobuf/duration.proto";
import "udpa/annotations/sensitive.proto";
import "validate/validate.proto";
message Keys {
  message Client {
    string name = 1 [(validate.rules).string = {min_len: 1}];
    string secret = 2 [(udpa.annotations.sensitive) = true];
    optional uint32 weight = 3 [deprecated = true];
  }
  enum Kind {
    NONE = 0;
    SOME = 1;
  }
  repeated Client clients = 1;
  map<string, Kind> kinds = 2;
  envoy.type.v3.Percent share = 3;
  google.protobuf.Duration age = 4 [(validate.rules).duration = {gte: {seconds: 1, nanos: 500000000}, lt: {seconds: 9}}];
  oneof choice {
    option (validate.required) = true;
    bool yes = 5;
    bool no = 6;
  }
}
`;

t.test('the schema contains unreferenced messages, with their rules and types', async (t) => {
  const types = loadApi(checkoutWith(t, PROTO));
  t.same(bundleOf(types).nested.acme, {
    nested: {
      Keys: {
        fields: {
          clients: '[]Keys.Client 1',
          kinds: '{string}Keys.Kind 2',
          share: '.envoy.type.v3.Percent 3',
          age: ['.google.protobuf.Duration 4', { rules: { duration: { gte: '1.5s', lt: '9s' } } }],
          yes: 'bool 5',
          no: 'bool 6',
        },
        oneofs: { choice: [4, 5, true] },
        nested: {
          Client: {
            fields: {
              name: ['string 1', { rules: { string: { min_len: 1 } } }],
              secret: ['string 2', { sensitive: true }],
              weight: ['uint32 3', { deprecated: true, optional: true }],
            },
          },
          Kind: { values: { NONE: 0, SOME: 1 } },
        },
      },
    },
  });
  t.match(typesOf(types), "readonly 'acme.Keys': Keys;");
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
  t.test(`a mistake is reported with its place: ${message}`, async (t) => {
    const root = checkoutWith(t, `syntax = "proto3";\npackage acme;\n${text}\n`);
    t.throws(() => loadApi(root), { message });
  });
}

t.test('rules and options that are not supported are refused', async (t) => {
  const fields = [
    'string a = 1 [(validate.rules).string = {min_length: 1}];',
    'uint32 b = 2 [(validate.rules).string.min_len = 1];',
    'repeated string d = 4 [(validate.rules).repeated = {min_items: 1, items: {string: {len_bytes: 1}}}];',
    // Valid:
    'google.protobuf.UInt32Value e = 5 [(validate.rules).uint32 = {gt: 1}, (validate.rules).message.required = true];',
    'map<string, bytes> f = 6 [(validate.rules).map = {keys: {string: {min_len: 1}}, values: {bytes: {min_len: 1}}}];',
  ];
  const keys = (text: string) => checkoutWith(t, `syntax = "proto3";\npackage acme;\nmessage Keys { ${text} }\n`);
  t.throws(() => loadApi(keys(fields.join('\n'))), {
    message: [
      "a: the rule 'string.min_length' is not implemented",
      "b: rules of 'string' do not fit it: it is of 'uint32'",
      "d: the rule 'string.len_bytes' is not implemented",
    ]
      .map((mistake) => `src/config/protos/acme/keys.proto: acme.Keys.${mistake}`)
      .join('\n'),
  });
  t.throws(() => loadApi(keys('uint32 c = 3 [(validte.rules).uint32.gt = 1];')), {
    message: "src/config/protos/acme/keys.proto: acme.Keys.c: Baton does not know the option '(validte.rules)'",
  });
});

/** Returns the root of a checkout with this file next to the API files. */
function checkoutWith(t: Teardown, text: string): string {
  const root = tempDir(t);
  cpSync(packagePath('src/config/api'), join(root, 'src/config/api'), { recursive: true });
  mkdirSync(join(root, 'src/config/protos/acme'), { recursive: true });
  writeFileSync(join(root, 'src/config/protos/acme/keys.proto'), text);
  symlinkSync(packagePath('node_modules'), join(root, 'node_modules'));
  return root;
}
