// Configurations in the style of public ones. Those of corpus/ load unchanged; those of corpus/refused/ are refused with the
// errors in the file next to them.

import { readdirSync, readFileSync } from 'node:fs';
import { basename } from 'node:path';
import t from 'tap';
import { packagePath } from '../../src/common/package/package-root.js';
import { ExtensionCatalog } from '../../src/config/catalog/extension.js';
import { loadConfiguration } from '../../src/config/load/load.js';
import { formatProblems } from '../../src/config/text/problem.js';
import { EXTENSIONS } from '../../src/extensions/index.js';

const CORPUS = packagePath('test/config/corpus');

for (const file of readdirSync(CORPUS).filter((name) => name !== 'refused')) {
  t.test(file, async (t) => {
    const result = loadConfiguration({ path: `${CORPUS}/${file}` }, realCatalog());
    t.ok(result.ok, result.ok ? file : formatProblems(result.errors));
    const unexpected = result.warnings.filter(({ path, message }) => !isKnownAsDeprecated(path, message));
    t.equal(formatProblems(unexpected), '');
  });
}

const REFUSED = `${CORPUS}/refused`;

for (const file of readdirSync(REFUSED).filter((name) => name.endsWith('.yaml'))) {
  t.test(`refused: ${file}`, async (t) => {
    const result = loadConfiguration({ path: `${REFUSED}/${file}` }, realCatalog());
    const found = result.ok
      ? []
      : result.errors.map(({ line, column, path, message }) => `${line}:${column} ${path}: ${message}`);
    const expected = readFileSync(`${REFUSED}/${basename(file, '.yaml')}.expected`, 'utf8');
    t.equal(`${found.join('\n')}\n`, expected);
  });
}

/** Public configurations have fields that the API has since deprecated. */
function isKnownAsDeprecated(path: string, message: string): boolean {
  return (
    /\b(google_re2|sort_properties|dns_refresh_rate|respect_dns_ttl)$/.test(path) && message.endsWith('is deprecated')
  );
}

/** Returns the extensions of this build. */
function realCatalog(): ExtensionCatalog {
  return new ExtensionCatalog(EXTENSIONS);
}
