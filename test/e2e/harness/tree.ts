// A copy of this checkout that a test may change and build.

import { execFile } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, statSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { Test } from 'tap';
import { packagePath } from '../../../src/common/package/package-root.js';
import { tempDir } from './environment.js';

const COPIED = ['package.json', 'package-lock.json', 'tsconfig.json', 'src', 'scripts', 'test', 'examples', 'dist'];

/** Compiling all tests takes longer than everything else. */
const isNoTest = (path: string) => !/\.test\.(ts|js|js\.map)$/.test(path);
const COPY = { recursive: true, preserveTimestamps: true, filter: isNoTest };

/** A copy of this tree and its build, without the tests, in a directory whose name programs get wrong. */
export function copyTree(t: Test) {
  const root = join(tempDir(t), 'ä dir b%20');
  mkdirSync(root);
  for (const name of COPIED) cpSync(packagePath(name), join(root, name), COPY);
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
