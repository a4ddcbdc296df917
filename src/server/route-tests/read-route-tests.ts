// Reads and checks the file of --route-tests.

import { ExtensionCatalog } from '../../config/catalog/extension.js';
import { Checker } from '../../config/check.js';
import { FeatureUse } from '../../config/feature-use.js';
import { readFileSource } from '../../config/forms/file-source.js';
import type { RouteTest, RouteTests } from '../../config/generated/api.js';
import { implementedBy } from '../../config/implemented/index.js';
import { Decoder } from '../../config/schema/decode.js';
import { loadSchema } from '../../config/schema/schema.js';
import type { Problem } from '../../config/text/problem.js';
import { Problems } from '../../config/text/problems.js';
import { EXTENSIONS } from '../../extensions/index.js';
import { ROUTE_TEST_FIELDS } from './fields.js';

const MESSAGE = 'baton.route_tests.v1.RouteTests';

/** How many values YAML aliases may add to those in the text. */
const MAX_EXPANSION = 1_000_000;

/** Returns the tests, or all that is wrong with the file. */
export function readRouteTests(
  path: string,
): { readonly tests: readonly RouteTest[] } | { problems: readonly Problem[] } {
  const { problems: unreadable, source } = readFileSource(path, MESSAGE);
  if (source === undefined || unreadable.length > 0) return { problems: unreadable };
  const schema = loadSchema();
  const problems = new Problems([source]);
  const decoder = new Decoder(schema, problems, 'refuse', source.size + MAX_EXPANSION);
  const message = decoder.decode(MESSAGE, source.value);
  decoder.noteUnknown(source.unknownFields ?? []);
  const catalog = new ExtensionCatalog(EXTENSIONS);
  const features = new FeatureUse(problems, new Map(), 'none');
  const table = implementedBy([...catalog.list(), { implemented: ROUTE_TEST_FIELDS }]);
  new Checker(schema, catalog, table, problems, features).check(MESSAGE, message);
  if (problems.errorCount > 0) return { problems: problems.errors };
  return { tests: (message as RouteTests).tests ?? [] };
}
