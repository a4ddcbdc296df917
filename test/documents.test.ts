// The documents match the code: links lead to existing files and headings, named methods exist in their class, and every folder of
// src is documented.

import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import t, { type Test } from 'tap';
import { parse, parseAllDocuments } from 'yaml';
import { compatibilityDocument, readDocument } from '../scripts/document-fields.js';
import { packagePath } from '../src/common/package/package-root.js';
import { ExtensionCatalog } from '../src/config/catalog/extension.js';
import { type LoadResult, loadConfiguration } from '../src/config/load/load.js';
import { encodeJson, loadAllMessages } from '../src/config/schema/messages.js';
import { formatProblems } from '../src/config/text/problem.js';
import { EXTENSIONS } from '../src/extensions/index.js';
import { MessageReader } from '../src/xds/reading/message-reader.js';
import { readingSettings } from '../src/xds/reading/settings.js';
import type { ReadingResult } from '../src/xds/reading/task.js';
import { RESOURCE_MESSAGES } from '../src/xds/resource.js';
import { Authority } from './e2e/harness/certificates.js';
import { tempDir } from './e2e/harness/index.js';

const DOCUMENTS = ['README.md', 'CONTRIBUTING.md', 'CHANGELOG.md', ...filesOf('docs', '.md')];
/** Their commands make certificates in the folder `certs`. */
const WITH_CERTIFICATES = ['examples/https.yaml', 'examples/mtls.yaml'];
const DYNAMIC_BY_FILES = 'examples/dynamic/files.yaml';
const DYNAMIC_BY_SERVER = 'examples/dynamic/management-server.yaml';
const DYNAMIC_ON_DEMAND = 'examples/dynamic/on-demand.yaml';

for (const document of DOCUMENTS) {
  t.test(document, async (t) => {
    for (const { text, target, heading } of links(document)) {
      const path = target === '' ? document : join(dirname(document), target);
      if (!t.ok(existsSync(packagePath(path)), `${path} exists`)) continue;
      if (heading !== undefined) t.ok(headings(path).includes(heading), `${path} has a heading #${heading}`);
      if (!path.endsWith('.ts')) continue;
      const named = /^`(\w+)(?:\.(#?\w+))?`$/.exec(text);
      if (named === null) continue;
      const [, type, method] = named;
      const source = readFileSync(packagePath(path), 'utf8');
      t.match(source, new RegExp(`(class|interface|function) ${type}\\b`), `${path} has ${type}`);
      if (method !== undefined) t.match(source, new RegExp(`^  (\\w+ )*${method}\\(`, 'm'), `${type} has ${method}`);
    }
  });
}

t.test('every folder of src is in the floors picture and in CONTRIBUTING.md', async (t) => {
  const drawing = readFileSync(packagePath('docs/images/floors.svg'), 'utf8');
  const drawn = Array.from(drawing.matchAll(/class="room">([^<]*)</g), ([, names]) => names!.split(' · ')).flat();
  const table = readFileSync(packagePath('CONTRIBUTING.md'), 'utf8');
  for (const room of readdirSync(packagePath('src'))) {
    t.ok(drawn.includes(room), `docs/images/floors.svg has ${room}`);
    t.ok(table.includes(`\`src/${room}`), `CONTRIBUTING.md has src/${room}`);
  }
});

for (const example of [...filesOf('examples', '.yaml'), DYNAMIC_BY_FILES, DYNAMIC_BY_SERVER, DYNAMIC_ON_DEMAND]) {
  t.test(example, async (t) => {
    if (WITH_CERTIFICATES.includes(example)) await enterFolderWithCertificates(t);
    const result = load(example);
    t.ok(result.ok, result.ok ? 'is accepted' : formatProblems(result.errors));
    // Envoy's API has no other way to route datagrams that it does not call deprecated.
    const warnings = result.warnings.filter(
      ({ message }) => !message.includes("field 'matcher' of envoy.extensions.filters.udp"),
    );
    t.equal(formatProblems(warnings), '', 'without a warning');
  });
}

t.test('the configuration in examples/kubernetes/baton.yaml', async (t) => {
  const [first] = parseAllDocuments(readFileSync(packagePath('examples/kubernetes/baton.yaml'), 'utf8'));
  const { data } = first!.toJS() as { readonly data: Readonly<Record<string, string>> };
  const result = loadConfiguration({ yaml: data['baton.yaml']! }, new ExtensionCatalog(EXTENSIONS));
  t.ok(result.ok, result.ok ? 'is accepted' : formatProblems(result.errors));
  t.equal(formatProblems(result.warnings), '', 'without a warning');
});

for (const [type, file] of [
  ['listener', 'examples/dynamic/listeners.yaml'],
  ['route', 'examples/dynamic/routes.yaml'],
  ['cluster', 'examples/dynamic/clusters.yaml'],
  ['secret', 'examples/dynamic/certificate.yaml'],
] as const) {
  t.test(file, async (t) => {
    const task = { kind: 'file', message: RESOURCE_MESSAGES[type], path: packagePath(file) } as const;
    const { items } = reader(DYNAMIC_BY_FILES).answer(task) as ReadingResult;
    t.ok(items.length > 0);
    for (const item of items) t.equal(item.kind, 'usable', item.kind === 'refused' ? item.details : item.name);
  });
}

t.test('examples/dynamic/resources.yaml', async (t) => {
  const list = parse(readFileSync(packagePath('examples/dynamic/resources.yaml'), 'utf8')) as { '@type': string }[];
  const types = loadAllMessages();
  for (const { '@type': typeUrl, ...resource } of list) {
    const message = typeUrl.slice(typeUrl.indexOf('/') + 1);
    const value = encodeJson(types.lookupType(message), resource);
    const task = {
      kind: 'resources',
      message,
      encoded: [{ name: '', version: '', aliases: [], typeUrl, value }],
    } as const;
    const { items } = reader(DYNAMIC_BY_SERVER).answer(task) as ReadingResult;
    t.equal(items[0]?.kind, 'usable', items[0]?.kind === 'refused' ? items[0].details : typeUrl);
  }
});

t.test('docs/compatibility.md matches the implemented fields', async (t) => {
  t.equal(readDocument(), compatibilityDocument(), 'npm run build && node dist/scripts/document-fields.js writes it');
});

function load(example: string): LoadResult {
  return loadConfiguration({ path: packagePath(example) }, new ExtensionCatalog(EXTENSIONS));
}

/** Changes to a folder with the certificates that examples name, until the end of the test. */
async function enterFolderWithCertificates(t: Test): Promise<void> {
  const before = process.cwd();
  process.chdir(tempDir(t));
  t.teardown(() => process.chdir(before));
  mkdirSync('certs');
  const root = await Authority.create();
  writeFileSync('certs/ca.pem', root.certificate);
  for (const name of ['www', 'api', 'client', 'backend']) {
    const { chain, key } = await root.issue({ names: [`${name}.example.com`] });
    writeFileSync(`certs/${name}.pem`, chain);
    writeFileSync(`certs/${name}.key`, key);
  }
}

/** Returns a reader of resources for a server with that bootstrap. */
function reader(example: string): MessageReader {
  const loaded = load(example);
  const options = { rejectsUnknown: true, ignoresUnknown: false, skipsDeprecatedLogs: false, disabledExtensions: [] };
  return new MessageReader(readingSettings(loaded.ok ? loaded.bootstrap : {}, options), EXTENSIONS);
}

function filesOf(directory: string, suffix: string): string[] {
  const names = readdirSync(packagePath(directory)).filter((name) => name.endsWith(suffix));
  return names.map((name) => `${directory}/${name}`);
}

interface Link {
  readonly text: string;
  /** '': the document itself. */
  readonly target: string;
  /** The part after '#'. */
  readonly heading: string | undefined;
}

/** Returns the links within the repository. */
function links(document: string): Link[] {
  const found = readFileSync(packagePath(document), 'utf8').matchAll(/\[([^\]]*)\]\(([^)#\s]*)(?:#([^)\s]+))?[^)]*\)/g);
  return Array.from(found, ([, text, target, heading]) => ({ text: text!, target: target!, heading })).filter(
    ({ target }) => !/^[a-z]+:/.test(target),
  );
}

/** Returns the anchors of the headings. */
function headings(document: string): string[] {
  const text = readFileSync(packagePath(document), 'utf8').replace(/```.*?```/gs, '');
  return Array.from(text.matchAll(/^#+ (.*)$/gm), ([, heading]) =>
    heading!
      .toLowerCase()
      .replace(/[^\w\- ]/g, '')
      .replaceAll(' ', '-'),
  );
}
