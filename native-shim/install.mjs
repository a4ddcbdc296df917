#!/usr/bin/env node
// Compiles the native code that Baton loads, packages and native-shim, for the Node that runs this. Usable builds are kept.
//
// Usage: node native-shim/install.mjs [re2] [unix-dgram] [native-shim]. npm runs it when it installs Baton. package.json prevents
// packages from compiling themselves, because npm would show no progress for minutes.

import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { delimiter, dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';

const NEEDED = `Compiling needs python3, make, a C++ compiler (Debian: apt-get install python3 build-essential) and the headers of
Node.js, which node-gyp downloads unless they are installed beside the program or npm_config_nodedir is set.`;

const here = dirname(fileURLToPath(import.meta.url));
const require = createRequire(import.meta.url);
/** The sourcesHash() of the last build of native-shim. */
const record = join(here, 'build/sources.sha256');

const PARTS = {
  re2: { about: 'a minute or more', isUsable: () => loads('re2'), build: () => buildPackage('re2') },
  'unix-dgram': { about: 'some seconds', isUsable: () => loads('unix-dgram'), build: () => buildPackage('unix-dgram') },
  'native-shim': { about: 'a minute', isUsable: isShimUsable, build: buildShim },
};

const names = process.argv.slice(2);
for (const name of names.length > 0 ? names : Object.keys(PARTS)) {
  const part = PARTS[name];
  if (part === undefined) end(`'${name}' is not one of ${Object.keys(PARTS).join(', ')}`);
  if (part.isUsable()) continue;
  console.error(`Compiling ${name} for Node ${process.version}: this takes ${part.about} …`);
  const began = performance.now();
  const { status, error, output } = part.build();
  if (status !== 0)
    end(`${error === undefined ? output.join('') : error.message}\n${name} was not compiled. ${NEEDED}`);
  if (!part.isUsable())
    end(
      `${name} was compiled, but not for Node ${process.version}: is npm_config_nodedir that of another version? ${NEEDED}`,
    );
  console.error(`Compiled ${name} in ${Math.round((performance.now() - began) / 1000)} s.`);
}

/** Returns whether the module can be loaded, in a new process, because a process that failed to load one for another Node may
/*  fail again. */
function loads(name) {
  return spawnSync(process.execPath, ['-e', `require(${JSON.stringify(name)})`], { cwd: here }).status === 0;
}

function isShimUsable() {
  return (
    existsSync(record) &&
    readFileSync(record, 'utf8') === sourcesHash() &&
    loads('./build/Release/shim.node') &&
    loads('./build/Release/lua.node')
  );
}

/** Runs the package's own script, which may download a build. */
function buildPackage(name) {
  const file = require.resolve(`${name}/package.json`);
  const { scripts } = JSON.parse(readFileSync(file, 'utf8'));
  return scripts?.install === undefined
    ? run(dirname(file), 'node-gyp', ['rebuild'])
    : run(dirname(file), 'npm', ['run', 'install']);
}

function buildShim() {
  const done = run(here, 'node-gyp', ['rebuild']);
  if (done.status === 0) writeFileSync(record, sourcesHash());
  return done;
}

function run(cwd, command, args) {
  return spawnSync(command, args, {
    cwd,
    stdio: ['ignore', 'pipe', 'pipe'],
    maxBuffer: 1 << 28,
    encoding: 'utf8',
    env: { ...process.env, ...headers(), PATH: `${join(here, '../node_modules/.bin')}${delimiter}${process.env.PATH}` },
  });
}

/** Returns settings for node-gyp, which downloads headers even if Node came with them, and uses npm_config_nodedir for any Node. */
function headers() {
  const prefix = join(dirname(process.execPath), '..');
  return areHeaders(prefix) ? { npm_config_nodedir: prefix } : {};
}

/** Returns whether the folder has the headers of the Node that runs this. */
function areHeaders(folder) {
  const version = join(folder, 'include/node/node_version.h');
  if (!existsSync(version)) return false;
  const text = readFileSync(version, 'utf8');
  const parts = ['MAJOR', 'MINOR', 'PATCH'].map(
    (part) => new RegExp(`#define NODE_${part}_VERSION (\\d+)`).exec(text)?.[1],
  );
  return process.version === `v${parts.join('.')}`;
}

/** Returns a hash of the names and contents of the sources. */
function sourcesHash() {
  const sum = createHash('sha256');
  const entries = ['luajit', 'src'].flatMap((folder) =>
    readdirSync(join(here, folder), { recursive: true, withFileTypes: true }),
  );
  const files = entries.filter((entry) => entry.isFile()).map(({ parentPath, name }) => join(parentPath, name));
  for (const file of [join(here, 'binding.gyp'), ...files.sort()]) {
    sum
      .update(`${relative(here, file)}\0`)
      .update(readFileSync(file))
      .update('\0');
  }
  return sum.digest('hex');
}

function end(message) {
  console.error(message);
  process.exit(1);
}
