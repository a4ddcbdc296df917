// Puts the compiled program together into dist/baton: some dozens of files instead of hundreds, which every thread of every process
// loads in half the time, and in which V8 sees the constants of other modules. dist/src stays as it is, for tests and scripts.
//
// pino is put in too: every thread has it, and loads it in 6 ms and 0.7 MB that way instead of 18 ms and 6.5 MB, for its own way is
// some thirty files, with threads that Baton's loggers do not use. Other packages stay in node_modules: some hold native code, and some
// ask where they lie.
//
// The entries are main.js, restarter/main.js and whatever the program names with programFile('…'). Beside each file lies one, .lines,
// that tells where in the source its lines stand (src/common/package/source-places.ts).

import { chmodSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { SourceMap } from 'node:module';
import { dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { rolldown } from 'rolldown';

const root = join(dirname(fileURLToPath(import.meta.url)), '..');
const compiled = join(root, 'dist/src');
const target = join(root, 'dist/baton');

/** pino and what it is made of. */
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

rmSync(target, { recursive: true, force: true });
const entries = ['main', 'restarter/main'];
const bundle = await rolldown({
  input: Object.fromEntries(entries.map((name) => [name, join(compiled, `${name}.js`)])),
  external: (name) => isPackage(name) && !PUT_IN.includes(name),
  platform: 'node',
  plugins: [{ name: 'compiled-program', load, transform: emitEntries }],
  onLog(level, { message }) {
    console.error(message);
    if (level === 'warn') process.exitCode = 1;
  },
});
const { output } = await bundle.write({
  dir: target,
  format: 'es',
  entryFileNames: '[name].js',
  chunkFileNames: '[name]-[hash].js',
  sourcemap: true,
  comments: false,
});
writeFileSync(join(target, 'LICENCES'), licences());
// npm makes them executable once, when it links them: an installed `baton` must outlive the next build.
for (const name of entries) chmodSync(join(target, `${name}.js`), 0o755);
for (const chunk of output.filter(({ map }) => map != null)) {
  const path = join(target, chunk.fileName);
  writeFileSync(path, toAscii(readFileSync(path, 'utf8')));
  writeFileSync(`${path}.lines`, JSON.stringify(linesOf(chunk)));
}

function isPackage(name) {
  return !name.startsWith('.') && !name.startsWith('/');
}

/** Their licences ask for a copy of each beside what was put in. */
function licences() {
  const text = (name) => readFileSync(join(root, 'node_modules', name, 'LICENSE'), 'utf8').trim();
  return PUT_IN.map((name) => `Licence of ${name}, which is part of these files:\n\n${text(name)}\n`).join('\n\n');
}

/** With the map that the compiler wrote, so that places are those of the TypeScript source. */
function load(path) {
  if (path.endsWith('/node_modules/pino/lib/transport.js')) return NO_TRANSPORT;
  if (!path.startsWith(compiled)) return undefined;
  return { code: readFileSync(path, 'utf8'), map: readFileSync(`${path}.map`, 'utf8') };
}

function emitEntries(code) {
  for (const [, path] of code.matchAll(/\bprogramFile\('([^']+)'\)/g)) {
    this.emitFile({ type: 'chunk', id: join(compiled, path), fileName: path });
  }
}

/** V8 keeps such a source in half the memory. What is not ASCII stands in texts only: comments are left out. */
function toAscii(code) {
  return code.replace(/[^\0-\x7f]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`);
}

/** Of the SourceLines that src/common/package/source-places.ts reads. */
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
