// System files are re-read when they have changed or could not be read.

import { spawnSync } from 'node:child_process';
import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { ReloadedFile } from '../../../src/upstream/dns/reloaded-file.js';
import { tempDir } from '../../e2e/harness/index.js';

t.test('get() returns the current content, which is empty for a missing file', async (t) => {
  const path = join(tempDir(t), 'file');
  const file = new ReloadedFile(path, (text) => text);
  t.equal(file.get(), '');
  writeFileSync(path, 'one');
  t.equal(file.get(), 'one');
  writeFileSync(path, 'other');
  t.equal(file.get(), 'other');
  rmSync(path);
  t.equal(file.get(), '');
});

t.test('without a free descriptor the last content is kept until one is free', async (t) => {
  const path = join(tempDir(t), 'file');
  writeFileSync(path, 'one');
  const module = new URL('../../../src/upstream/dns/reloaded-file.js', import.meta.url);
  const script = `
    import { closeSync, openSync, writeFileSync } from 'node:fs';
    import { ReloadedFile } from '${module}';
    const file = new ReloadedFile('${path}', (text) => text);
    const seen = [file.get()];
    writeFileSync('${path}', 'other');
    const open = [];
    try {
      for (;;) open.push(openSync('/dev/null'));
    } catch {
      // All descriptors are in use.
    }
    seen.push(file.get());
    for (const fd of open) closeSync(fd);
    seen.push(file.get());
    console.log(seen.join());
  `;
  const limited = ['-c', 'ulimit -n 64 && exec "$0" "$@"', process.execPath, '--input-type=module', '-e', script];
  const { stdout, stderr } = spawnSync('sh', limited, { encoding: 'utf8' });
  t.equal(stdout, 'one,one,other\n', stderr);
});
