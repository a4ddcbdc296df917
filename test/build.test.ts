// The build does what has to be done and no more, whatever has changed since the last one, and wherever the checkout is.

import { execFile } from 'node:child_process';
import {
  appendFileSync,
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import t, { type Test } from 'tap';
import { packagePath } from '../src/common/package/package-root.js';
import { tempDir } from './e2e/harness/index.js';

const COPIED = ['package.json', 'package-lock.json', 'tsconfig.json', 'src', 'scripts', 'test', 'examples'];

/** A checkout of this tree in a directory whose name programs get wrong. */
function copyTree(t: Test) {
  const root = join(tempDir(t), 'ä dir b%20');
  mkdirSync(root);
  for (const name of COPIED) cpSync(packagePath(name), join(root, name), { recursive: true });
  symlinkSync(packagePath('native-shim'), join(root, 'native-shim'));
  mkdirSync(join(root, 'node_modules'));
  for (const name of readdirSync(packagePath('node_modules'))) {
    const [from, to] = [packagePath('node_modules', name), join(root, 'node_modules', name)];
    if (name === '.package-lock.json') cpSync(from, to);
    else symlinkSync(from, to);
  }
  const npm = (...args: string[]) => promisify(execFile)('npm', args, { cwd: root, timeout: 150_000 });
  return {
    npm,
    build: (...args: string[]) => npm('run', '--silent', 'build', '--', ...args),
    path: (name: string) => join(root, name),
    has: (name: string) => existsSync(join(root, name)),
    read: (name: string) => readFileSync(join(root, name), 'utf8'),
    /** When each file below dist was written. */
    written: () =>
      Object.fromEntries(
        readdirSync(join(root, 'dist'), { recursive: true, encoding: 'utf8' })
          .filter((name) => !statSync(join(root, 'dist', name)).isDirectory())
          .map((name) => [name, statSync(join(root, 'dist', name)).mtimeMs]),
      ),
  };
}

t.test('npm start and npm run build', async (t) => {
  const tree = copyTree(t);
  // The build of this tree is good there too: '--force' below is the one that builds everything.
  cpSync(packagePath('dist'), tree.path('dist'), { recursive: true, preserveTimestamps: true });
  await tree.build();
  const first = tree.written();

  await t.test('nothing is built when nothing has changed, and the program runs', async (t) => {
    const { stdout, stderr } = await tree.npm('start', '--', '--mode', 'validate', '-c', 'examples/quickstart.yaml');
    t.match(stdout + stderr, /OK/);
    t.strictSame(tree.written(), first);
  });

  await t.test('a file is compiled when it is new or other, and its output goes with it', async (t) => {
    writeFileSync(tree.path('test/new.test.ts'), 'export const number = 1;\n');
    await tree.build();
    t.match(tree.read('dist/test/new.test.js'), 'number = 1');
    const times = statSync(tree.path('test/new.test.ts'));
    writeFileSync(tree.path('test/new.test.ts'), 'export const number = 2;\n');
    utimesSync(tree.path('test/new.test.ts'), times.atime, times.mtime);
    await tree.build();
    t.match(tree.read('dist/test/new.test.js'), 'number = 2', 'though its date and size are the same');
    rmSync(tree.path('test/new.test.ts'));
    await tree.build();
    t.notOk(tree.has('dist/test/new.test.js'));
    t.notOk(tree.has('dist/test/new.test.js.map'));
    t.equal(tree.written()['baton/main.js'], first['baton/main.js'], 'what does not depend on it stays');
  });

  await t.test('outputs that are gone or other are made again', async (t) => {
    const bundle = tree.read('dist/baton/main.js');
    rmSync(tree.path('dist/src/main.js'));
    rmSync(tree.path('dist/schema.json'));
    appendFileSync(tree.path('dist/baton/main.js'), '// damaged\n');
    await tree.build();
    t.ok(tree.has('dist/src/main.js'));
    t.ok(tree.has('dist/schema.json'));
    t.equal(tree.read('dist/baton/main.js'), bundle);
  });

  await t.test('all is built when packages have changed, and with --force', async (t) => {
    const before = tree.written()['baton/main.js']!;
    appendFileSync(tree.path('node_modules/.package-lock.json'), '\n');
    await tree.build();
    const after = tree.written()['baton/main.js']!;
    t.ok(after > before);
    await tree.build('--force');
    t.ok(tree.written()['baton/main.js']! > after);
  });

  await t.test('a build that failed is done again', async (t) => {
    const source = tree.read('src/main.ts');
    appendFileSync(tree.path('src/main.ts'), 'export const wrong: number = "text";\n');
    for (const _ of [1, 2]) await t.rejects(tree.build(), { message: /Command failed/ });
    writeFileSync(tree.path('src/main.ts'), source);
    await tree.build();
  });

  await t.test('pages come and go with --define', async (t) => {
    await tree.build('--define=admin_html=disabled');
    t.notOk(tree.has('dist/web'));
    t.match(tree.read('dist/src/common/package/generated/build.js'), 'ADMIN_HTML = false');
    await tree.build();
    t.ok(tree.has('dist/web/admin.css'));
    t.match(tree.read('dist/src/common/package/generated/build.js'), 'ADMIN_HTML = true');
  });
});
