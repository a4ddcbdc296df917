// Bundles the compiled program into dist/baton: a few files instead of hundreds, which every thread of every process loads in
// half the time, and in which V8 can use constants of other modules. dist/src is unchanged, for tests and scripts.
//
// Each entry is bundled separately, because threads share no modules. Common chunks would be dozens of files, and Node opens all
// imports of a module at once: a thread that starts while descriptors are short could not open them.
//
// pino is bundled too: every thread uses it, and loads it in 6 ms and 0.7 MB this way instead of 18 ms and 6.5 MB, because it
// consists of about thirty files, including threads that Baton's loggers do not use. Other packages stay in node_modules: some
// contain native code, and some need their own path.
//
// The entries are main.js, restarter/main.js and the files that the program names with programFile('…'). An entry only calls the
// program loader (scripts/bundle/program-loader.cjs), which loads the other files from code caches. Each file has a .lines file
// with the source positions of its lines (src/common/package/source-places.ts).

import { chmodSync, copyFileSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { SourceMap } from 'node:module';
import { basename, dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { rolldown } from 'rolldown';

const root = join(dirname(fileURLToPath(import.meta.url)), '..');
const compiled = join(root, 'dist/src');
const target = join(root, 'dist/baton');
/** The module baton/testing, which tests import. */
const testing = join(root, 'dist/testing');

/** Files that the build places beside the program. */
const LOADER = 'program-loader.js';

/** pino and its dependencies. */
const PUT_IN = [
  'pino',
  '@pinojs/redact',
  'atomic-sleep',
  'on-exit-leak-free',
  'pino-std-serializers',
  'quick-format-unescaped',
  'safe-stable-stringify',
  'sonic-boom',
];
/** pino's threads. */
const NO_TRANSPORT = "module.exports = () => { throw new Error('pino has no transports here') }";

/** Modules that are loaded one after the other at startup: for each, the modules that the previous ones lack are one file. */
const STAGES = ['main', 'cli/run', 'server/serve', 'restarter/main', 'restarter/run'];

rmSync(target, { recursive: true, force: true });
mkdirSync(target, { recursive: true });
writeFileSync(join(target, 'package.json'), '{ "type": "commonjs" }\n');
copyFileSync(join(root, 'scripts/bundle', LOADER.replace('.js', '.cjs')), join(target, LOADER));
const programs = ['main', 'restarter/main'];
const threads = new Set();
for (const name of programs) await putTogether(name);
for (const name of threads) await putTogether(name);
await bundleTesting();
writeFileSync(join(target, 'LICENCES'), licences());
// npm makes them executable once, when it links them: an installed `baton` must outlive the next build.
for (const name of programs) chmodSync(join(target, `${name}.js`), 0o755);

/** Bundles an entry with the modules that it loads on demand. */
async function putTogether(entry) {
  const bundle = await rolldown({
    input: { [entry]: compiledPath(entry) },
    external: (name) => isPackage(name) && !PUT_IN.includes(name),
    platform: 'node',
    preserveEntrySignatures: 'allow-extension',
    plugins: [{ name: 'compiled-program', load, transform: findThreads }],
    onLog(level, { message }) {
      console.error(message);
      if (level === 'warn') process.exitCode = 1;
    },
  });
  const { output } = await bundle.write({
    dir: target,
    format: 'cjs',
    entryFileNames: '[name].program.js',
    chunkFileNames: '[name]-[hash].js',
    codeSplitting: { groups: [{ name: stageOf(entry), debugName: entry, includeDependenciesRecursively: false }] },
    sourcemap: true,
    comments: false,
  });
  for (const chunk of output.filter(({ map }) => map != null)) {
    const path = join(target, chunk.fileName);
    writeFileSync(path, toAscii(readFileSync(path, 'utf8').replace(/^#!/, '//')));
    writeFileSync(`${path}.lines`, JSON.stringify(linesOf(chunk)));
  }
  writeFileSync(join(target, `${entry}.js`), entryFile(entry));
}

/** Bundles baton/testing as a module of its own: only what filters use around them, without native code. */
async function bundleTesting() {
  rmSync(testing, { recursive: true, force: true });
  const bundle = await rolldown({
    input: { index: compiledPath('testing/index') },
    external: isPackage,
    platform: 'node',
    treeshake: { moduleSideEffects: false },
    plugins: [{ name: 'compiled-program', load }],
  });
  await bundle.write({
    dir: testing,
    format: 'esm',
    entryFileNames: '[name].js',
    codeSplitting: false,
    comments: false,
  });
}

/** Returns the entry file for Node. The program loader loads the program's other files. */
function entryFile(entry) {
  const shebang = programs.includes(entry) ? '#!/usr/bin/env node\n' : '';
  const loader = relative(dirname(entry), LOADER);
  const path = `./${basename(entry)}.program.js`;
  return `${shebang}module.exports = require('${loader.startsWith('.') ? loader : `./${loader}`}')(require.resolve('${path}'));\n`;
}

/**
 * Returns the name of a module's output file, or null to let rolldown choose. An entry is separate from its imports, because it
 * awaits parts that import these as well.
 */
function stageOf(entry) {
  let stages;
  return (id, graph) => {
    if (id === compiledPath(entry)) return null;
    stages ??= [entry, ...STAGES].map((name) => [name, importedBy(compiledPath(name), graph)]);
    return stages.find(([, modules]) => modules.has(id))?.[0].replaceAll('/', '-') ?? null;
  };
}

/** Returns a module and all of its imports, except those loaded on demand. */
function importedBy(root, graph) {
  const found = new Set();
  const waiting = [root];
  for (let id = waiting.pop(); id !== undefined; id = waiting.pop()) {
    const info = found.has(id) ? undefined : graph.getModuleInfo(id);
    if (info == null || info.isExternal) continue;
    found.add(id);
    waiting.push(...info.importedIds);
  }
  return found;
}

function compiledPath(name) {
  return join(compiled, `${name}.js`);
}

function isPackage(name) {
  return !name.startsWith('.') && !name.startsWith('/');
}

/** Copies the licences of bundled packages, as they require. */
function licences() {
  const text = (name) => readFileSync(join(root, 'node_modules', name, 'LICENSE'), 'utf8').trim();
  return PUT_IN.map((name) => `Licence of ${name}, which is part of these files:\n\n${text(name)}\n`).join('\n\n');
}

/** Loads the compiler's source map too, so that positions refer to the TypeScript source. */
function load(path) {
  if (path.endsWith('/node_modules/pino/lib/transport.js')) return NO_TRANSPORT;
  if (!path.startsWith(compiled)) return undefined;
  return { code: readFileSync(path, 'utf8'), map: readFileSync(`${path}.map`, 'utf8') };
}

function findThreads(code) {
  for (const [, path] of code.matchAll(/\bprogramFile\('([^']+)\.js'\)/g)) threads.add(path);
}

/** Escapes non-ASCII characters, which occur only in strings: V8 stores an ASCII source in half the memory. */
function toAscii(code) {
  return code.replace(/[^\0-\x7f]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`);
}

/** The format of SourceLines, which src/common/package/source-places.ts reads. */
function linesOf({ fileName, code, map }) {
  const places = new SourceMap(JSON.parse(map.toString()));
  const files = [];
  const runs = [];
  let file = -1;
  let offset = 0;
  for (const [index, line] of code.split('\n').entries()) {
    const { originalSource, originalLine } = places.findEntry(index, line.search(/\S|$/));
    if (originalSource === undefined) continue;
    const name = relative(root, join(target, dirname(fileName), originalSource));
    if (name === files[file] && originalLine - index === offset) continue;
    file = files.indexOf(name) < 0 ? files.push(name) - 1 : files.indexOf(name);
    offset = originalLine - index;
    runs.push(index + 1, file, originalLine + 1);
  }
  return { files, runs };
}
