// Imported into each thread of a program that scripts/bundle/code-cache.mjs runs: writes the code caches of the files that the thread has
// loaded, with the functions that have run.
//
// V8 takes a cache only where its flags are those under which the cache was written. The program changes some after it has loaded: so
// the primary writes before each change, and a thread while it starts.

import { mkdirSync, renameSync, writeFileSync } from 'node:fs';
import { createRequire, syncBuiltinESMExports } from 'node:module';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import v8 from 'node:v8';
import vm from 'node:vm';
import { isMainThread, MessagePort, threadId } from 'node:worker_threads';

const program = join(dirname(fileURLToPath(import.meta.url)), '../../dist/baton');
const { cachePath, sourceState } = createRequire(import.meta.url)(join(program, 'program-loader.js'));

/** Messages that each thread sends before the server is live, after which the primary changes more flags. */
const START_MESSAGES = 2;

/** Scripts to write: path → vm.Script. */
const loaded = new Map();

vm.Script = class extends vm.Script {
  constructor(source, options) {
    super(source, options);
    if (options?.filename?.startsWith(program)) loaded.set(options.filename, this);
  }
};

if (isMainThread) {
  const { setFlagsFromString } = v8;
  v8.setFlagsFromString = (flags) => {
    write();
    loaded.clear();
    setFlagsFromString(flags);
  };
  syncBuiltinESMExports();
  process.on('exit', write);
} else {
  const { postMessage } = MessagePort.prototype;
  let messages = 0;
  MessagePort.prototype.postMessage = function (...args) {
    if (++messages <= START_MESSAGES) write();
    return postMessage.apply(this, args);
  };
}

function write() {
  for (const [path, script] of loaded) {
    const target = cachePath(path);
    const part = `${target}.${process.pid}-${threadId}`;
    mkdirSync(dirname(target), { recursive: true });
    writeFileSync(part, Buffer.concat([sourceState(path), script.createCachedData()]));
    renameSync(part, target);
  }
}
