// Messages of the .proto files in src/config/protos can be configured like Envoy's own, whoever refers to them.

import { cpSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { packagePath } from '../../../src/common/package/package-root.js';
import { tempDir } from '../../e2e/harness/index.js';

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
  const root = tempDir(t);
  const protos = join(root, 'src/config/protos');
  cpSync(packagePath('src/config/protos'), protos, { recursive: true });
  mkdirSync(join(protos, 'acme'));
  writeFileSync(join(protos, 'acme/keys.proto'), PROTO);
  symlinkSync(packagePath('node_modules'), join(root, 'node_modules'));
  const bundle = bundleOf(loadProtos(root));
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
