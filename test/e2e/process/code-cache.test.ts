// The program starts from its code caches where they are usable, and without them otherwise.

import { execFileSync, spawnSync } from 'node:child_process';
import {
  cpSync,
  existsSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  truncateSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import t, { type Test } from 'tap';
import { packagePath } from '../../../src/common/package/package-root.js';
import { bootstrap, loopback, startBaton, tempDir } from '../harness/index.js';

/** Writes what V8 did with the cache of each file of the program to the file that RECORD names. */
const RECORDER = `
  import { appendFileSync } from 'node:fs';
  import vm from 'node:vm';
  vm.Script = class extends vm.Script {
    constructor(source, options) {
      super(source, options);
      appendFileSync(process.env.RECORD, JSON.stringify([options.filename, this.cachedDataRejected ?? 'none']) + '\\n');
    }
  };`;

t.test('the primary, the configuration thread and a worker start from caches', async (t) => {
  const directory = tempDir(t);
  const recorder = join(directory, 'recorder.mjs');
  const record = join(directory, 'record');
  writeFileSync(recorder, RECORDER);
  const baton = await startBaton(t, {
    program: packagePath('dist/baton/main.js'),
    config: bootstrap({ listeners: [], clusters: [] }),
    env: { NODE_OPTIONS: `--import=${pathToFileURL(recorder)}`, RECORD: record },
  });
  await baton.stop();
  const results = readFileSync(record, 'utf8')
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as [string, boolean | 'none']);
  for (const name of ['main', 'cli-run', 'server-serve', 'config-thread', 'worker-worker']) {
    const result = results.find(([path]) => path.includes(`/dist/baton/${name}`) || path.includes(`-${name}`));
    t.strictSame(result?.[1], false, `${name}: a cache was accepted`);
  }
});

/** Makes a separate installation with its own caches. */
function install(t: Test) {
  const root = tempDir(t);
  for (const name of ['package.json', 'dist/baton', 'dist/code-cache', 'dist/schema.json'])
    cpSync(packagePath(name), join(root, name), { recursive: true, preserveTimestamps: true });
  for (const name of ['node_modules', 'native-shim']) symlinkSync(packagePath(name), join(root, name));
  return {
    path: (name: string) => join(root, name),
    files: (folder: string) =>
      readdirSync(join(root, folder), { recursive: true, withFileTypes: true })
        .filter((entry) => entry.isFile())
        .map((entry) => join(entry.parentPath, entry.name)),
    run: (...args: string[]) =>
      spawnSync(process.execPath, [join(root, 'dist/baton/main.js'), ...args], { encoding: 'utf8' }),
  };
}

t.test('a program that has moved with its caches logs the places in its source', async (t) => {
  const { stderr } = install(t).run('-c', '/nonexistent.yaml', '--mode', 'validate');
  t.match(stderr, /\[critical\]\[main\] \[src\/cli\/run\.ts:\d+\]/);
});

t.test('a program that was changed after its cache was written runs as changed', async (t) => {
  const copy = install(t);
  const file = copy.files('dist/baton').find((path) => /\/cli-run-[^/]+\.js$/.test(path))!;
  const source = readFileSync(file, 'utf8');
  writeFileSync(file, source.replace('Usage: baton', 'Usage: BATON').replace('usage: baton', 'usage: BATON'));
  t.equal(readFileSync(file, 'utf8').length, source.length);
  utimesSync(file, 1, 1);
  t.match(copy.run('--help').stdout, 'sage: BATON');
});

for (const [what, damage] of [
  ['missing', (path: string) => rmSync(path)],
  ['empty', (path: string) => truncateSync(path)],
  ['cut off', (path: string) => truncateSync(path, 600)],
  ['of another version of V8', (path: string) => writeFileSync(path, readFileSync(path).fill(7, 16))],
] as const) {
  t.test(`the program runs when its caches are ${what}`, async (t) => {
    const copy = install(t);
    for (const path of copy.files('dist/code-cache')) damage(path);
    const result = copy.run(
      '--mode',
      'validate',
      '--config-yaml',
      `admin: ${JSON.stringify({ address: loopback(0) })}`,
    );
    t.match(result, { status: 0, stderr: '' });
    t.match(result.stdout, 'OK');
  });
}

t.test('caches are written when the package is installed, unless the program is missing', async (t) => {
  const copy = install(t);
  cpSync(packagePath('scripts/bundle'), copy.path('scripts/bundle'), { recursive: true });
  rmSync(copy.path('dist/code-cache'), { recursive: true });
  execFileSync(process.execPath, [copy.path('scripts/bundle/code-cache.mjs')]);
  const written = copy.files('dist/code-cache').join();
  for (const name of ['main', 'cli-run', 'server-serve', 'config-thread', 'worker-worker']) t.match(written, name);
  rmSync(copy.path('dist/baton'), { recursive: true });
  rmSync(copy.path('dist/code-cache'), { recursive: true });
  execFileSync(process.execPath, [copy.path('scripts/bundle/code-cache.mjs')]);
  t.notOk(existsSync(copy.path('dist/code-cache')));
});
