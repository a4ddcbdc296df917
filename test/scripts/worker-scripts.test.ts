// A worker loads modules, and serves without one whose top level does not end on it.

import { on } from 'node:events';
import { fileURLToPath } from 'node:url';
import { isMainThread, parentPort, Worker } from 'node:worker_threads';
import t from 'tap';
import type { PublishedScripts } from '../../src/scripts/published.js';
import { SCRIPT_THREAD_OPTIONS } from '../../src/scripts/thread-options.js';
import { WorkerScripts } from '../../src/scripts/worker-scripts.js';

const GOOD = `import { defineHttpFilter } from 'baton'; export default defineHttpFilter({ onRequest() {} });`;

const publish = (texts: Readonly<Record<string, string>>): PublishedScripts =>
  Object.entries(texts).map(([name, text]) => {
    const entry = `file:///modules/${name}.js`;
    return { generation: 1, image: { name, entry, files: { [entry]: { text, isJson: false } } } };
  });

if (isMainThread) {
  t.test('a module that hangs is reported, and the others are loaded', async (t) => {
    const worker = new Worker(fileURLToPath(import.meta.url), { execArgv: [...SCRIPT_THREAD_OPTIONS], stdout: true });
    // tap sends messages too.
    for await (const [result] of on(worker, 'message')) {
      if (!('generations' in result)) continue;
      t.strictSame(result, { generations: [1, 0], reports: [{ kind: 'unusable', name: 'hangs' }] });
      break;
    }
    await worker.terminate();
  });
} else {
  // As its messages do with a worker, this keeps the thread.
  parentPort!.on('message', () => {});
  const reports: unknown[] = [];
  const state = publish({ works: GOOD, hangs: `${GOOD} await new Promise(() => {});` });
  const scripts = new WorkerScripts({ state, onState: undefined, send: (report) => reports.push(report) }, 50);
  await scripts.loading;
  const generations = ['works', 'hangs'].map((name) => scripts.module(name).generation);
  parentPort!.postMessage({ generations, reports });
}
