// The image of examples/container has what it runs, as far as that shows without Docker: what its last stage takes from this build
// is a whole installation.

import { execFileSync } from 'node:child_process';
import { cpSync, mkdirSync, readFileSync, symlinkSync } from 'node:fs';
import { basename, join } from 'node:path';
import t from 'tap';
import { packagePath } from '../src/common/package/package-root.js';
import { loopback, startBaton, tempDir } from './e2e/harness/index.js';

const DOCKERFILE = readFileSync(packagePath('examples/container/Dockerfile'), 'utf8');

t.test('it is built from a Node that gets security fixes', async (t) => {
  for (const [, major] of DOCKERFILE.matchAll(/^FROM node:(\d+)/gm)) t.ok(Number(major) >= 24, `Node ${major}`);
});

t.test('its context has nothing that is installed, compiled or generated', async (t) => {
  const ignored = readFileSync(packagePath('.dockerignore'), 'utf8').split('\n');
  for (const name of ['.git', 'node_modules', 'dist', 'native-shim/build*', 'src/**/generated'])
    t.ok(ignored.includes(name), name);
});

t.test('what it copies runs', async (t) => {
  const image = tempDir(t);
  const copies = [...DOCKERFILE.matchAll(/^COPY --from=build (.*) (\S+)$/gm)];
  t.ok(copies.length > 5);
  for (const [, sources, target] of copies) {
    for (const source of sources!.split(' ')) {
      const from = packagePath(source.replace('/opt/baton/', ''));
      const to = join(image, target!.endsWith('/') ? join(target!, basename(source)) : target!);
      mkdirSync(join(to, '..'), { recursive: true });
      if (basename(from) === 'node_modules') symlinkSync(from, to);
      else cpSync(from, to, { recursive: true });
    }
  }
  const run = (...args: string[]) => execFileSync(process.execPath, args, { encoding: 'utf8' });
  const program = join(image, 'opt/baton/dist/baton/main.js');
  t.match(run(program, '--mode', 'validate', '-c', join(image, 'opt/baton/examples/quickstart.yaml')), 'OK');
  t.match(run(join(image, 'opt/baton/dist/baton/restarter/main.js'), '--help'), 'usage: baton-restarter');
  execFileSync('sh', ['-n', join(image, 'usr/local/bin/entrypoint.sh')]);
  const baton = await startBaton(t, { program, config: { admin: { address: loopback(0) } } });
  for (const path of ['/', '/web/admin.css', '/config_dump']) t.equal((await baton.admin(path)).status, 200, path);
  await baton.stop();
});
