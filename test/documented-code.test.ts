// The code that docs/extending.md shows in whole files compiles as it stands there, in a checkout that has them.

import { spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import t from 'tap';
import { packagePath } from '../src/common/package/package-root.js';
import { tempDir } from './e2e/harness/index.js';

const { loadApi } = await import(packagePath('scripts/schema/api.mjs'));
const { typesOf } = await import(packagePath('scripts/schema/types.mjs'));

/** A path in backquotes, which a block of code follows. */
const FILE = /`([\w./-]+)`:\n\n```(?:ts|proto)\n(.*?)```/gs;

t.test('docs/extending.md', async (t) => {
  const files = [...readFileSync(packagePath('docs/extending.md'), 'utf8').matchAll(FILE)].map(([, path, code]) => ({
    path: path!,
    code: code!,
  }));
  t.ok(files.length >= 10);
  const root = tempDir(t);
  for (const part of ['package.json', 'src', 'test/e2e'])
    cpSync(packagePath(part), join(root, part), { recursive: true });
  symlinkSync(packagePath('node_modules'), join(root, 'node_modules'));
  for (const { path, code } of files) {
    mkdirSync(dirname(join(root, path)), { recursive: true });
    writeFileSync(join(root, path), code);
  }
  writeFileSync(join(root, 'src/config/generated/api.ts'), typesOf(loadApi(root)));
  const project = {
    extends: packagePath('tsconfig.json'),
    compilerOptions: { rootDir: '.', noEmit: true },
    include: files.flatMap(({ path }) => (path.endsWith('.ts') ? path : [])),
  };
  writeFileSync(join(root, 'tsconfig.json'), JSON.stringify(project));
  const tsc = packagePath('node_modules/.bin/tsc');
  const { stdout, stderr, status } = spawnSync(tsc, ['-p', root], { encoding: 'utf8' });
  t.equal(stdout + stderr, '');
  t.equal(status, 0);
});
