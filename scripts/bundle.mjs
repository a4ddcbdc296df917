// Puts the compiled program together into dist/baton: some dozens of files instead of hundreds, which every thread of every process
// loads in half the time, and in which V8 sees the constants of other modules. dist/src stays as it is, for tests and scripts.
//
// The entries are main.js, restarter/main.js and whatever the program names with programFile('…'). positions.json tells the
// place in the source of what stands where: [first line, file, line in that file] of every run of lines
// (src/common/package/source-places.ts).

import { chmodSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { SourceMap } from 'node:module';
import { dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { rolldown } from 'rolldown';

const root = join(dirname(fileURLToPath(import.meta.url)), '..');
const compiled = join(root, 'dist/src');
const target = join(root, 'dist/baton');

rmSync(target, { recursive: true, force: true });
const entries = ['main', 'restarter/main'];
const bundle = await rolldown({
  input: Object.fromEntries(entries.map((name) => [name, join(compiled, `${name}.js`)])),
  // Packages stay in node_modules: some hold native code, and some ask where they lie.
  external: (name) => !name.startsWith('.') && !name.startsWith('/'),
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
// npm makes them executable once, when it links them: an installed `baton` must outlive the next build.
for (const name of entries) chmodSync(join(target, `${name}.js`), 0o755);
writeFileSync(join(target, 'positions.json'), JSON.stringify(positionsOf(output.filter(({ map }) => map != null))));

/** With the map that the compiler wrote, so that places are those of the TypeScript source. */
function load(path) {
  return { code: readFileSync(path, 'utf8'), map: readFileSync(`${path}.map`, 'utf8') };
}

function emitEntries(code) {
  for (const [, path] of code.matchAll(/\bprogramFile\('([^']+)'\)/g)) {
    this.emitFile({ type: 'chunk', id: join(compiled, path), fileName: path });
  }
}

function positionsOf(chunks) {
  const files = [];
  const runs = {};
  for (const { fileName, code, map } of chunks) {
    const places = new SourceMap(JSON.parse(map.toString()));
    const run = [];
    let file = -1;
    let offset = 0;
    for (const [index, line] of code.split('\n').entries()) {
      const { originalSource, originalLine } = places.findEntry(index, line.search(/\S|$/));
      if (originalSource === undefined) continue;
      const name = relative(root, join(target, dirname(fileName), originalSource));
      if (name === files[file] && originalLine - index === offset) continue;
      file = files.indexOf(name) < 0 ? files.push(name) - 1 : files.indexOf(name);
      offset = originalLine - index;
      run.push(index + 1, file, originalLine + 1);
    }
    runs[fileName] = run;
  }
  return { files, runs };
}
