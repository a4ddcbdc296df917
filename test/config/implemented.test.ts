// The table of implemented fields leads everywhere it says, and to nothing else.

import t from 'tap';
import { IMPLEMENTED, rowOf } from '../../src/config/implemented/index.js';
import { ALL, type ImplementedTable } from '../../src/config/implemented/table.js';
import { loadSchema } from '../../src/config/schema/schema.js';
import { TEST_EXTENSIONS } from './catalog.js';

const schema = loadSchema();

/** What files of dynamic configuration hold. */
const OF_FILES = [
  'envoy.service.discovery.v3.DiscoveryResponse',
  'envoy.service.discovery.v3.Resource',
  'envoy.service.runtime.v3.Runtime',
  'envoy.config.core.v3.TypedExtensionConfig',
];

/** What an Any can hold that is no message of an extension's. */
const IN_ANY = ['envoy.config.route.v3.FilterConfig'];

/** Messages that a configuration can hold: from the bootstrap and the extensions, through implemented fields. */
function reachable(table: ImplementedTable): ReadonlySet<string> {
  const found = new Set<string>();
  const extensions = TEST_EXTENSIONS.flatMap((extension) => extension.typeUrls);
  const open = ['envoy.config.bootstrap.v3.Bootstrap', ...extensions, ...OF_FILES, ...IN_ANY];
  for (let name = open.pop(); name !== undefined; name = open.pop()) {
    if (found.has(name)) continue;
    found.add(name);
    for (const field of schema.message(name)!.fields.values()) {
      const row = rowOf(table, name, field.name);
      const isOpen = row !== undefined && !(typeof row === 'object' && 'refused' in row);
      if (isOpen && field.value.kind === 'message') open.push(field.value.name);
    }
  }
  return found;
}

t.test('every message that an implemented field holds has rows of its own, unless it has no fields', async (t) => {
  for (const name of reachable(IMPLEMENTED)) {
    const isEmpty = schema.message(name)!.fields.size === 0;
    t.ok(isEmpty || name in IMPLEMENTED, name);
  }
});

t.test('every row is about a field of the API that a configuration can hold', async (t) => {
  const held = reachable(IMPLEMENTED);
  for (const [name, rows] of Object.entries(IMPLEMENTED)) {
    t.ok(held.has(name), `${name} can be reached`);
    const type = schema.message(name);
    if (rows !== ALL) for (const field of Object.keys(rows)) t.ok(type?.fields.has(field), `${name}.${field}`);
  }
});
