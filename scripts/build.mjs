#!/usr/bin/env node
// Builds Baton into dist/: generated sources, the program as modules (dist/src) with its tests and scripts and put together (dist/baton),
// the JSON Schema of its configuration, the pages of the admin interface.
//
// Usage: npm run build [-- --define=admin_html=disabled]. With that the program has no pages for browsers, and says so
// where they would be; the next build without it has them again.

import { spawnSync } from 'node:child_process';
import { cpSync, readdirSync, rmSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const USAGE = 'usage: npm run build [-- --define=admin_html=enabled|disabled]';
const root = join(dirname(fileURLToPath(import.meta.url)), '..');
const source = join(root, 'src/admin/web');
const target = join(root, 'dist/web');

const hasHtml = readArguments(process.argv.slice(2));
run(process.execPath, 'scripts/build-info.mjs', `--admin-html=${hasHtml}`);
run(process.execPath, 'scripts/build-schema.mjs');
run('node_modules/.bin/tsc', '-p', '.');
run(process.execPath, 'scripts/bundle.mjs');
run(process.execPath, 'dist/scripts/json-schema.js');
// A page of an earlier build must not be served on.
rmSync(target, { recursive: true, force: true });
if (hasHtml) {
  run('node_modules/.bin/tsc', '-p', 'src/admin/web');
  for (const name of readdirSync(source)) {
    if (/\.(css|svg)$/.test(name)) cpSync(join(source, name), join(target, name));
  }
}

function readArguments(args) {
  let isEnabled = true;
  for (const arg of args) {
    const match = /^--define=admin_html=(enabled|disabled)$/.exec(arg);
    if (match === null) end(`unknown argument '${arg}'\n${USAGE}`);
    isEnabled = match[1] === 'enabled';
  }
  return isEnabled;
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
