// Every extension of Envoy 1.40 that Baton lacks is refused as such, by name and by the messages that configure it.

import { cpSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { packagePath } from '../../src/common/package/package-root.js';
import { ExtensionCatalog } from '../../src/config/catalog/extension.js';
import { ExtensionHints } from '../../src/config/catalog/extension-hints.js';
import { typeUrlOf } from '../../src/config/schema/message-name.js';
import { loadSchema } from '../../src/config/schema/schema.js';
import { newName } from '../../src/config/text/hints.js';
import { EXTENSIONS } from '../../src/extensions/index.js';
import { tempDir } from '../e2e/harness/index.js';

const { loadApi } = await import(packagePath('scripts/schema/api.mjs'));
const { loadExtensions } = await import(packagePath('scripts/schema/extensions.mjs'));

const FILE = packagePath('src/config/api/extensions.txt');
const catalog = new ExtensionCatalog(EXTENSIONS);
const hints = new ExtensionHints(loadSchema(), catalog);

/** Category, name and messages of each extension. */
const LISTED = [...readFileSync(FILE, 'utf8').matchAll(/^category (.*)\n((?: {2}.*\n)+)/gm)].flatMap(
  ([, category, lines]) =>
    lines!
      .trimEnd()
      .split('\n')
      .map((line) => {
        const [name, ...messages] = line.trim().split(' ');
        return { category: category!, name: name!, messages };
      }),
);

t.test('by name, in a place for its category', async (t) => {
  t.equal(LISTED.length, 516);
  for (const { category, name } of LISTED) {
    // It is implemented in another category: envoy.filters.http.buffer is not implemented as an upstream filter.
    if (catalog.list().some((extension) => extension.name === name)) continue;
    const text = hints.unknownName(name, category);
    const expected =
      newName(name) === undefined
        ? 'Baton does not implement this extension'
        : 'it belongs to an older API|the name belongs to an older API';
    t.match(text, new RegExp(expected), `${category} ${name}`);
  }
});

t.test('by message', async (t) => {
  for (const { category, name, messages } of LISTED) {
    for (const url of messages.map(typeUrlOf)) {
      const found = catalog.byTypeUrl(url, category);
      if (found?.category === category) continue;
      const text = hints.refusalOf(found, name, url, category);
      t.match(
        text,
        /: (Baton does not implement this extension|an extension of .* is needed here)/,
        `${category} ${name}`,
      );
    }
  }
});

t.test('an alternative is suggested for names like for messages', async (t) => {
  const text = hints.unknownName('envoy.access_loggers.fluentd', 'envoy.access_loggers');
  t.match(text, 'Baton does not implement this extension: log to standard output or a file');
});

for (const [line, mistake] of [
  ['  envoy.a no.such.Message', "there is no message 'no.such.Message'"],
  ['  envoy.access_loggers.file', "'envoy.access_loggers.file' is already defined"],
  [' envoy.a', "expected 'category' or the name of an extension, found ' envoy.a'"],
  ['category envoy.access_loggers', "the category 'envoy.access_loggers' is already defined"],
] as const) {
  t.test(`the line '${line}' fails the build`, async (t) => {
    const root = tempDir(t);
    cpSync(packagePath('src/config/api'), join(root, 'src/config/api'), { recursive: true });
    const path = join(root, 'src/config/api/extensions.txt');
    const before = '  envoy.access_loggers.fluentd ';
    const text = readFileSync(path, 'utf8');
    writeFileSync(path, text.replace(before, `${line}\n${before}`));
    const at = text.slice(0, text.indexOf(before)).split('\n').length;
    t.throws(() => loadExtensions(root, loadApi(root)), { message: `src/config/api/extensions.txt:${at}: ${mistake}` });
  });
}
