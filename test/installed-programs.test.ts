// What `npm install -g .` has linked can be run, also after the next build, which replaces the files behind the links.

import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import t from 'tap';
import { packagePath } from '../src/common/package/package-root.js';

const { bin } = JSON.parse(readFileSync(packagePath('package.json'), 'utf8')) as { bin: Record<string, string> };

for (const [name, path] of Object.entries(bin)) {
  t.test(name, async (t) => {
    const { stdout, error } = spawnSync(packagePath(path), ['--help'], { encoding: 'utf8' });
    t.equal(error, undefined);
    t.match(stdout, /^usage/i);
  });
}
