// The table of implemented fields covers everything that a configuration can set, and nothing else.

import { cpSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { packagePath } from '../../src/common/package/package-root.js';
import { implementedBy, isOpen, rowOf } from '../../src/config/implemented/index.js';
import type { ImplementedTable } from '../../src/config/implemented/table.js';
import { messageNameOf } from '../../src/config/schema/message-name.js';
import { loadSchema, Schema } from '../../src/config/schema/schema.js';
import { EXTENSIONS } from '../../src/extensions/index.js';
import { type Teardown, tempDir } from '../e2e/harness/index.js';

const { loadApi } = await import(packagePath('scripts/schema/api.mjs'));
const { bundleOf } = await import(packagePath('scripts/schema/bundle.mjs'));

const schema = loadSchema();
const TABLE = implementedBy(EXTENSIONS);

/** Messages in files of dynamic configuration. */
const OF_FILES = [
  'envoy.service.discovery.v3.DiscoveryResponse',
  'envoy.service.discovery.v3.Resource',
  'envoy.service.runtime.v3.Runtime',
  'envoy.config.core.v3.TypedExtensionConfig',
];

/** Messages that an Any can contain besides extensions' messages, and those that the admin interface accepts. */
const OTHERS = ['envoy.config.route.v3.FilterConfig', 'envoy.admin.v3.TapRequest'];

/** Returns the messages that a configuration can contain: from the bootstrap and the extensions, through implemented fields. */
function reachable(api: Schema): ReadonlySet<string> {
  const found = new Set<string>();
  const extensions = EXTENSIONS.flatMap(({ typeUrls }) => typeUrls.map(messageNameOf));
  const open = ['envoy.config.bootstrap.v3.Bootstrap', ...extensions, ...OF_FILES, ...OTHERS];
  for (let name = open.pop(); name !== undefined; name = open.pop()) {
    if (found.has(name)) continue;
    found.add(name);
    for (const field of api.message(name)!.fields.values()) {
      const row = rowOf(TABLE, name, field.name);
      if (!isOpen(row) || field.value.kind !== 'message') continue;
      // Only the empty message is accepted: its fields need no decision.
      const isEmpty = typeof row === 'object' && 'onlyEmpty' in row && !Object.hasOwn(TABLE, field.value.name);
      if (!isEmpty) open.push(field.value.name);
    }
  }
  return found;
}

/** Returns fields and values that can be set and have no row in the table. */
function undecided(api: Schema): string[] {
  return [...reachable(api)].flatMap((name) => {
    const { fields } = api.message(name)!;
    if (fields.size > 0 && !Object.hasOwn(TABLE, name)) return [name];
    return [...fields.values()].flatMap(({ name: field, value }) => {
      const row = rowOf(TABLE, name, field);
      if (row === undefined) return [`${name}.${field}`];
      if (value.kind !== 'enum' || !isOpen(row) || (row !== true && !('byValue' in row))) return [];
      const known = row === true ? {} : row.byValue;
      const missing = [...api.enum(value.name).values.keys()].filter((wanted) => !Object.hasOwn(known, wanted));
      return missing.map((wanted) => `${name}.${field}: ${wanted}`);
    });
  });
}

t.test('the table has a decision for each field and value that a configuration can set', async (t) => {
  t.same(undecided(schema), []);
});

for (const [what, file, line, added, missing] of [
  [
    'a field',
    'envoy.config.route',
    'message RouteMatch was envoy.api.v2.route.RouteMatch',
    '  string of_tomorrow = 99',
    'envoy.config.route.v3.RouteMatch.of_tomorrow',
  ],
  [
    'a field of a message whose fields are all implemented',
    'envoy.config.core',
    'message Pipe was envoy.api.v2.core.Pipe',
    '  string of_tomorrow = 99',
    'envoy.config.core.v3.Pipe.of_tomorrow',
  ],
  [
    'a member of a oneof',
    'envoy.type',
    '    string exact = 1',
    '    string of_tomorrow = 99',
    'envoy.type.matcher.v3.StringMatcher.of_tomorrow',
  ],
  [
    'a field of the message of an extension',
    'envoy.extensions.filters.http',
    'message Buffer was envoy.config.filter.http.buffer.v2.Buffer',
    '  bool of_tomorrow = 99',
    'envoy.extensions.filters.http.buffer.v3.Buffer.of_tomorrow',
  ],
  [
    'a value of an enum',
    'envoy.config.core',
    'enum RoutingPriority\n  DEFAULT = 0',
    '  OF_TOMORROW = 99',
    'envoy.config.route.v3.RouteAction.priority: OF_TOMORROW',
  ],
] as const) {
  t.test(`${what} that is added to the API needs a decision`, async (t) => {
    const found = undecided(schemaWith(t, `${file}.txt`, line, added));
    t.ok(found.includes(missing), found.join(', '));
  });
}

t.test('every row belongs to a field that a configuration can contain', async (t) => {
  const held = reachable(schema);
  for (const [name, rows] of Object.entries<ImplementedTable[keyof ImplementedTable]>(TABLE)) {
    t.ok(held.has(name), `${name} can be reached`);
    const type = schema.message(name);
    if (typeof rows === 'object')
      for (const field of Object.keys(rows)) t.ok(type?.fields.has(field), `${name}.${field}`);
  }
});

/** Returns the schema of an API in which `added` follows `line` in an API file. */
function schemaWith(t: Teardown, file: string, line: string, added: string): Schema {
  const root = tempDir(t);
  cpSync(packagePath('src/config/api'), join(root, 'src/config/api'), { recursive: true });
  cpSync(packagePath('src/config/protos'), join(root, 'src/config/protos'), { recursive: true });
  symlinkSync(packagePath('node_modules'), join(root, 'node_modules'));
  const path = join(root, 'src/config/api', file);
  const text = readFileSync(path, 'utf8');
  if (!text.includes(`${line}\n`)) throw new Error(`no line '${line}' in ${file}`);
  writeFileSync(path, text.replace(`${line}\n`, `${line}\n${added}\n`));
  return new Schema(bundleOf(loadApi(root)));
}
