// Configurations in the style of public ones load as they are.

import { readdirSync } from 'node:fs';
import t from 'tap';
import { packagePath } from '../../src/common/package-root.js';
import { loadConfiguration } from '../../src/config/load.js';
import { formatProblems } from '../../src/config/problem.js';
import { testCatalog } from './catalog.js';

const CORPUS = packagePath('test/config/corpus');

for (const file of readdirSync(CORPUS)) {
  t.test(file, async (t) => {
    const result = loadConfiguration({ path: `${CORPUS}/${file}` }, testCatalog());
    t.ok(result.ok, result.ok ? file : formatProblems(result.errors));
    const unexpected = result.warnings.filter((warning) => !warning.path.endsWith('google_re2'));
    t.equal(formatProblems(unexpected), '');
  });
}
