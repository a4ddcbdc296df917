// The plain YAML parser gives the same result as the YAML library, and leaves all other texts to the library.

import { readdirSync, readFileSync } from 'node:fs';
import { isDeepStrictEqual } from 'node:util';
import t, { type Test } from 'tap';
import { packagePath } from '../../../../src/common/package/package-root.js';
import type { PathPart } from '../../../../src/config/text/path.js';
import { readJson, readYaml } from '../../../../src/config/text/read-text.js';
import type { Source } from '../../../../src/config/text/source.js';
import { readPlainYaml } from '../../../../src/config/text/yaml/plain-yaml.js';
import { readDocument } from '../../../../src/config/text/yaml/yaml-document.js';
import { GOOD } from '../../good.js';
import { loadText, problemsOf } from '../../load-text.js';

/** An example of every construct that the parser supports. */
const PLAIN = `# a comment
node:   # another
  id: one two
  "@type": 'quoted: #text'
  empty:
  list:
  - a
  -
  - - 1
    - -2.50
  - key: "value"
    other: [ a b, 10.0.0.1:80, "x, y", { k: v, 'l': [] }, ] # flow
  -   wide: true
      null_word: nulls

  map:
      deep: {}
      time: 0.25s
      url: http://host/path?a=b&c
      negative: -17
      octal: 0644
      dashed: -x-
      escaped: "a\\n\\t\\"b\\" \\\\ \\/" # \\n
`;

/** Pieces for texts that are almost plain. */
const PIECES = [
  ...['\n', '\n\n', ' ', '  ', '-', '- ', ': ', ':', ', ', '#', ' #', '"', "'", '{', '}', '[', ']', '\\', '\t', '\r\n'],
  ...['&a ', '*a', '!!str ', '|', '>', '? ', '<<: ', '---', '...', '%', '~', 'null', 'True', 'no', '0x1F', '1e3', '.5'],
  ...[
    '-0',
    '+1',
    '007',
    '08',
    '0x',
    '1_000',
    '12345678901234567890',
    '.inf',
    'é',
    '\u00a0',
    'a: 1',
    '\nnode: x',
    '__proto__: ',
    '\\n',
    '\\\\',
    '\\"',
    '\\x41',
    '\\u0041',
    '-\n',
  ],
];

t.test('plain texts are parsed like the library parses them', async (t) => {
  const plain = readPlainYaml(PLAIN);
  t.ok(plain, 'the whole text is plain');
  sameAsLibrary(t, PLAIN);
});

t.test('a changed text is parsed like the library parses it, or is left to it', async (t) => {
  const random = seeded(20_261_120);
  const texts = [PLAIN, PLAIN, PLAIN, GOOD.replace('12345678901234567890', '1'), ...corpus()];
  let plain = 0;
  for (let round = 0; round < 2500; round++) {
    let text = texts[random(texts.length)]!;
    const changes = 1 + random(3);
    for (let change = 0; change < changes; change++) text = changed(text, random);
    if (sameAsLibrary(t, text)) plain++;
  }
  t.ok(plain > 250, `${plain} of 2500 were plain`);
});

t.test('a large file is checked like a small one, and its mistakes are located', async (t) => {
  const clusters = Array.from({ length: 2000 }, (_, index) => `  - name: c${index}\n    connect_timeout: 1s\n`).join(
    '',
  );
  const text = `static_resources:\n  clusters:\n${clusters}`;
  t.ok(readPlainYaml(text));
  t.match(loadText(text), { ok: true, bootstrap: { static_resources: { clusters: { length: 2000 } } } });
  t.equal(
    problemsOf(`${text}  - name: c7\n    conect_timeout: 1s\n`).split('\n  ')[0],
    "baton.yaml:4003:11: static_resources.clusters[2000].name: duplicate cluster 'c7': static_resources.clusters[7].name is the same",
  );
  t.match(problemsOf(`${text}  - name: c7\n    name: x\n`), /^baton\.yaml:4004:5: 'name' is set twice\n/);
});

t.test('places in JSON are those that the library finds', async (t) => {
  for (const text of corpus()) {
    const value = readYaml('a', text).source?.value;
    for (const indent of [0, 2]) {
      const json = JSON.stringify(value, (_key, held) => (typeof held === 'bigint' ? Number(held) : held), indent);
      samePlaces(t, json, readJson('a', json).source!, readDocument('a', json).source!);
    }
  }
});

/** Compares both readers; returns whether the text is plain. */
function sameAsLibrary(t: Test, text: string): boolean {
  const plain = readPlainYaml(text);
  if (!plain) return false;
  const { source, problems } = readDocument('a', text);
  if (plain.tooDeepAt !== undefined) {
    t.equal(source, undefined, 'the library refuses it too');
    return false;
  }
  samePlaces(t, text, readYaml('a', text).source!, source!);
  const [own, library] = [shown(plain.value), source ? shown(source.value) : JSON.stringify(problems)];
  if (own !== library || plain.size !== source?.size) t.fail('the readers differ', { text, own, library });
  return true;
}

/** Compares the places of keys and values. */
function samePlaces(t: Test, text: string, own: Source, library: Source): void {
  const visit = (value: unknown, path: PathPart[]): void => {
    for (const at of ['key', 'value'] as const) {
      const [here, there] = [own.locate(path, at), library.locate(path, at)];
      if (!isDeepStrictEqual(here, there)) t.fail('the places differ', { text, path, which: at, here, there });
    }
    if (typeof value !== 'object' || value === null) return;
    for (const [key, held] of Object.entries(value)) visit(held, [...path, Array.isArray(value) ? Number(key) : key]);
  };
  visit(own.value, []);
}

/** Distinguishes -0, which JSON does not. */
function shown(value: unknown): string {
  return JSON.stringify(value, (_key, held) => (Object.is(held, -0) ? '-0' : held));
}

function changed(text: string, random: (below: number) => number): string {
  const at = random(text.length);
  const piece = PIECES[random(PIECES.length)]!;
  switch (random(5)) {
    case 0:
      return text.slice(0, at) + piece + text.slice(at);
    case 1:
      return text.slice(0, at) + text.slice(at + 1 + random(4));
    case 2:
      return text.slice(0, at) + piece + text.slice(at + 1);
    case 3: {
      const lines = text.split('\n');
      const line = random(lines.length);
      lines[line] = random(2) === 0 ? ` ${lines[line]}` : lines[line]!.replace(/^ /, '');
      return lines.join('\n');
    }
    default: {
      const lines = text.split('\n');
      lines.splice(random(lines.length), random(2), lines[random(lines.length)]!);
      return lines.join('\n');
    }
  }
}

function corpus(): string[] {
  const folder = packagePath('test', 'config', 'corpus');
  const files = readdirSync(folder).filter((file) => file.endsWith('.yaml'));
  return files.map((file) => readFileSync(`${folder}/${file}`, 'utf8'));
}

/** A seeded generator of integers below a bound: the same sequence in every run. */
function seeded(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
}
