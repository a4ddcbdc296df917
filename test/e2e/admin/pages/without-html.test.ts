// A build without the admin pages: it says so in their place, contains none of their files, and all else works.

import { execFile } from 'node:child_process';
import { cpSync, existsSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import t from 'tap';
import { bootstrap, startBaton, tempDir } from '../../harness/index.js';

const root = fileURLToPath(new URL('../../../../../', import.meta.url));
const DISABLED = 'output was disabled by building with --define=admin_html=disabled';

t.test('npm run build -- --define=admin_html=disabled', async (t) => {
  const copy = tempDir(t);
  // The tree of this checkout must not change: other tests run from it.
  for (const name of ['package.json', 'tsconfig.json', 'src', 'scripts', 'test']) {
    cpSync(join(root, name), join(copy, name), { recursive: true });
  }
  for (const name of ['node_modules', 'native-shim']) symlinkSync(join(root, name), join(copy, name));
  const build = (...args: string[]) =>
    promisify(execFile)('npm', ['run', '--silent', 'build', ...args], {
      timeout: 150_000,
      cwd: copy,
    });
  await build('--', '--define=admin_html=disabled');

  t.notOk(existsSync(join(copy, 'dist/web')));
  const baton = await startBaton(t, {
    config: bootstrap({ listeners: [], clusters: [] }),
    args: ['-l', 'critical'],
    program: join(copy, 'dist/baton/main.js'),
  });
  t.match(await baton.admin('/'), {
    status: 200,
    body: `HTML ${DISABLED}`,
    headers: { 'content-type': /^text\/plain/ },
  });
  t.match(await baton.admin('/stats?format=html'), { status: 400, body: new RegExp(`^HTML ${DISABLED}`) });
  t.match(await baton.admin('/stats?format=active-html'), {
    status: 400,
    body: new RegExp(`^Active HTML ${DISABLED}`),
  });
  t.equal((await baton.admin('/web/admin.css')).status, 404);
  t.match(await baton.admin('/stats?filter=^server.live'), { status: 200, body: 'server.live: 1\n' });
  await baton.stop();

  await t.rejects(build('--', '--define=admin_htm=disabled'), {
    message: /unknown argument '--define=admin_htm=disabled'/,
  });
});
