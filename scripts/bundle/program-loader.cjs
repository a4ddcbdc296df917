// Loads the files of the bundled program in a thread, from the code caches that scripts/bundle/code-cache.mjs has written: V8 then has
// nothing to parse, which is a third of the CPU time of a start. A file without a usable cache is compiled from its source.
//
// A file of the program is a CommonJS module, which requires other files of the program by relative path and packages by name.

const { readFileSync, statSync } = require('node:fs');
const { createRequire } = require('node:module');
const { dirname, join, relative, resolve } = require('node:path');
const vm = require('node:vm');

const CACHES = join(__dirname, '../code-cache');
/** Bytes before V8's data: those of sourceState(). */
const HEADER = 16;

const modules = new Map();

/** Returns the exports of the file of the program at `path` (absolute). Throws what the file throws; the next call loads it again. */
function load(path) {
  const known = modules.get(path);
  if (known !== undefined) return known.exports;
  const module = { exports: {} };
  modules.set(path, module);
  try {
    const run = compile(path).runInThisContext();
    run(module.exports, requireFrom(path), module, path, dirname(path));
  } catch (error) {
    modules.delete(path);
    throw error;
  }
  return module.exports;
}

function compile(path) {
  // What is put before the source is on its first line, so that stacks name the lines of the file.
  const source = `(function (exports, require, module, __filename, __dirname) { ${readFileSync(path, 'utf8')}\n})`;
  return new vm.Script(source, {
    filename: path,
    cachedData: readCache(path),
    importModuleDynamically: vm.constants.USE_MAIN_CONTEXT_DEFAULT_LOADER,
  });
}

/** Returns the code cache of a file. V8 itself rejects data of another version of V8, or made under other flags. */
function readCache(path) {
  try {
    const bytes = readFileSync(cachePath(path));
    return bytes.subarray(0, HEADER).equals(sourceState(path)) ? bytes.subarray(HEADER) : undefined;
  } catch {
    return undefined;
  }
}

/** Returns the size and the time of a source: V8 compares only the length. Whole seconds, because archives keep no more. */
function sourceState(path) {
  const { size, mtimeMs } = statSync(path);
  const state = Buffer.alloc(HEADER);
  state.writeDoubleLE(size, 0);
  state.writeDoubleLE(Math.floor(mtimeMs / 1000), 8);
  return state;
}

/** Returns the path of the code cache of a file of the program. */
function cachePath(path) {
  return join(CACHES, `${relative(__dirname, path)}.cache`);
}

function requireFrom(path) {
  const requirePackage = createRequire(path);
  return (name) => (name.startsWith('.') ? load(resolve(dirname(path), name)) : requirePackage(name));
}

module.exports = Object.assign(load, { cachePath, sourceState });
