// The documents speak of what is there: links lead to files, and a method that is named is a method of that class.

import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import t from 'tap';
import { compatibilityDocument, readDocument } from '../scripts/document-fields.js';
import { packagePath } from '../src/common/package-root.js';
import { ExtensionCatalog } from '../src/config/extension.js';
import { loadConfiguration } from '../src/config/load/load.js';
import { formatProblems } from '../src/config/text/problem.js';
import { EXTENSIONS } from '../src/extensions/index.js';

const DOCUMENTS = ['README.md', 'CONTRIBUTING.md', ...filesOf('docs', '.md')];

for (const document of DOCUMENTS) {
  t.test(document, async (t) => {
    for (const { text, target } of links(document)) {
      const path = join(dirname(document), target);
      if (!t.ok(existsSync(packagePath(path)), `${path} exists`) || !path.endsWith('.ts')) continue;
      const named = /^`(\w+)(?:\.(#?\w+))?`$/.exec(text);
      if (named === null) continue;
      const [, type, method] = named;
      const source = readFileSync(packagePath(path), 'utf8');
      t.match(source, new RegExp(`(class|interface) ${type}\\b`), `${path} has ${type}`);
      if (method !== undefined) t.match(source, new RegExp(`^  (\\w+ )*${method}\\(`, 'm'), `${type} has ${method}`);
    }
  });
}

for (const example of filesOf('examples', '.yaml')) {
  t.test(example, async (t) => {
    const result = loadConfiguration({ path: packagePath(example) }, new ExtensionCatalog(EXTENSIONS));
    t.ok(result.ok, result.ok ? 'is accepted' : formatProblems(result.errors));
    t.equal(formatProblems(result.warnings), '', 'without a warning');
  });
}

t.test('docs/compatibility.md is what the loader obeys', async (t) => {
  t.equal(readDocument(), compatibilityDocument(), 'npm run build && node dist/scripts/document-fields.js writes it');
});

function filesOf(directory: string, suffix: string): string[] {
  const names = readdirSync(packagePath(directory)).filter((name) => name.endsWith(suffix));
  return names.map((name) => `${directory}/${name}`);
}

/** Links to files of the repository, without what stands behind '#'. */
function links(document: string): { readonly text: string; readonly target: string }[] {
  const found: { text: string; target: string }[] = [];
  for (const [, text, target] of readFileSync(packagePath(document), 'utf8').matchAll(
    /\[([^\]]*)\]\(([^)#\s]+)[^)]*\)/g,
  )) {
    if (!/^[a-z]+:/.test(target!)) found.push({ text: text!, target: target! });
  }
  return found;
}
