#!/usr/bin/env node
// Builds Baton: native-shim, and into dist/ generated sources, the program as modules (dist/src) with its tests and scripts, and bundled
// (dist/baton) with its code caches (dist/code-cache), the JSON Schema of its configuration, the pages of the admin interface. Steps
// whose inputs have not changed are left out.
//
// Usage: npm run build [-- --define=admin_html=disabled] [--force]. With the first the program has no pages for browsers, and says so
// where they would be; the next build without it has them again. With the second everything in dist/ is built.

import { spawnSync } from 'node:child_process';
import { cpSync, existsSync, readdirSync, rmSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { filesBelow, Inputs } from './build/inputs.mjs';
import { RECORDS, Step } from './build/step.mjs';

const USAGE = 'usage: npm run build [-- --define=admin_html=enabled|disabled] [--force]';
const WEB = 'src/admin/web';
/** Where the compiler puts each folder of its sources. */
const COMPILED = ['src', 'test', 'scripts', 'examples'];
/** npm writes the second when it has installed: what is really there. */
const PACKAGES = ['package.json', 'package-lock.json', 'node_modules/.package-lock.json'];
const OWN = ['scripts/build.mjs', 'scripts/build'];

const root = join(dirname(fileURLToPath(import.meta.url)), '..');
const { hasHtml, isForced } = readArguments(process.argv.slice(2));

run(process.execPath, 'native-shim/install.mjs', 'native-shim');
run(process.execPath, 'scripts/build-info.mjs', `--admin-html=${hasHtml}`);
let inputs = new Inputs(root);
const isGenerated = (path) => path.startsWith('src/config/generated/');
step('schema', {
  reads: ['scripts', 'src/config', ...PACKAGES],
  isInput: (path) => !isGenerated(path),
  outputs: ['dist/schema.json', 'src/config/generated'],
}).run(() => run(process.execPath, 'scripts/build-schema.mjs'));

// Sources have been generated.
inputs = new Inputs(root);
const isProgram = (path) => !path.startsWith(`${WEB}/`);
step('modules', {
  reads: [...COMPILED, 'tsconfig.json', ...PACKAGES, ...OWN],
  isInput: isProgram,
  outputs: COMPILED.map((folder) => `dist/${folder}`),
}).run(compile);
step('bundle', {
  reads: ['src', 'scripts/bundle.mjs', 'scripts/bundle', 'tsconfig.json', ...PACKAGES, ...OWN],
  isInput: isProgram,
  outputs: ['dist/baton'],
}).run(() => run(process.execPath, 'scripts/bundle.mjs'));
// The program that has been bundled just now.
inputs = new Inputs(root);
step('code-cache', {
  reads: ['dist/baton', 'scripts/bundle', ...PACKAGES, ...OWN],
  outputs: ['dist/code-cache'],
  with: process.version,
}).run(() => run(process.execPath, 'scripts/bundle/code-cache.mjs'));
step('json-schema', {
  reads: ['src', 'scripts/json-schema.ts', 'dist/schema.json', 'tsconfig.json', ...PACKAGES, ...OWN],
  isInput: isProgram,
  outputs: ['dist/baton.schema.json'],
}).run(() => run(process.execPath, 'dist/scripts/json-schema.js'));

if (hasHtml) {
  step('web', { reads: [WEB, 'tsconfig.json', ...PACKAGES, ...OWN], outputs: ['dist/web'] }).run(buildPages);
} else {
  // A page of an earlier build must not be served on.
  rmSync(join(root, 'dist/web'), { recursive: true, force: true });
}

function step(name, { reads, isInput, outputs, with: version = '' }) {
  return new Step(root, name, { fingerprint: inputs.fingerprint(reads, isInput) + version, outputs, isForced });
}

/** The compiler looks only at what has changed, unless what it wrote before is not as it was. */
function compile(isWhole) {
  const state = join(RECORDS, 'tsc.json');
  if (isWhole) rmSync(join(root, state), { force: true });
  run('node_modules/.bin/tsc', '-p', '.', '--incremental', '--tsBuildInfoFile', state);
  // Of a source that is gone nothing may be imported, and no test may run.
  for (const path of filesBelow(
    root,
    COMPILED.map((folder) => `dist/${folder}`),
  )) {
    const [, source] = /^dist\/(.*)\.js(?:\.map)?$/.exec(path) ?? [];
    if (source !== undefined && !existsSync(join(root, `${source}.ts`))) rmSync(join(root, path));
  }
}

function buildPages() {
  rmSync(join(root, 'dist/web'), { recursive: true, force: true });
  run('node_modules/.bin/tsc', '-p', WEB);
  for (const name of readdirSync(join(root, WEB))) {
    if (/\.(css|svg)$/.test(name)) cpSync(join(root, WEB, name), join(root, 'dist/web', name));
  }
}

function readArguments(args) {
  const found = { hasHtml: true, isForced: false };
  for (const arg of args) {
    const match = /^--define=admin_html=(enabled|disabled)$/.exec(arg);
    if (arg === '--force') found.isForced = true;
    else if (match !== null) found.hasHtml = match[1] === 'enabled';
    else end(`unknown argument '${arg}'\n${USAGE}`);
  }
  return found;
}

function run(command, ...args) {
  const { status, error } = spawnSync(command, args, { cwd: root, stdio: 'inherit' });
  if (error !== undefined) end(`cannot run ${command}: ${error.message}`);
  if (status !== 0) process.exit(status ?? 1);
}

function end(message) {
  console.error(message);
  process.exit(1);
}
