// The cost of filters in TypeScript: the CPU time per request of a filter that reads a header and sets another, compared with
// header_mutation, and the memory of modules.
//
//   npm run bench:filters [-- --rounds=5]
//
// The times are those of data-plane.js, the whole data plane of a worker
// on a simulated transport: `npm run bench -- --workloads=filter` compares with Lua in Envoy and HAProxy over sockets. The variants take turns, and the best window of each counts, so that other activity on the machine affects
// them alike.

import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { packagePath } from '../../src/common/package/package-root.js';
import { SCRIPT_THREAD_OPTIONS } from '../../src/scripts/thread-options.js';
import { startBaton } from '../../src/testing/index.js';

const VARIANTS: Readonly<Record<string, readonly string[]>> = {
  'no filter': [],
  header_mutation: ['--filter=header_mutation'],
  'TypeScript, synchronous': ['--filter=sync'],
  'TypeScript, async': ['--filter=async'],
  '10 × TypeScript, synchronous': ['--filter=sync', '--filters=10'],
  '10 × TypeScript, async': ['--filter=async', '--filters=10'],
};
const MODULES = 4;
const MODULE = `import { defineHttpFilter } from 'baton';
export default defineHttpFilter({ onRequest(request) { request.headers.set('x-seen', request.headers.get('user-agent') ?? ''); } });`;

const rounds = Number(/--rounds=(\d+)/.exec(process.argv.join(' '))?.[1] ?? 5);
const best = new Map(Object.keys(VARIANTS).map((name) => [name, Number.POSITIVE_INFINITY]));
for (let round = 0; round < rounds; round++) {
  for (const [name, flags] of Object.entries(VARIANTS)) best.set(name, Math.min(best.get(name)!, measure(flags)));
}
const base = best.get('no filter')!;
process.stdout.write('| filter | µs per request | more than without |\n|---|---|---|\n');
for (const [name, us] of best) process.stdout.write(`| ${name} | ${us.toFixed(2)} | ${(us - base).toFixed(2)} |\n`);

const without = await memoryOf(0);
const withModules = await memoryOf(MODULES);
process.stdout.write(
  `\nMemory of Baton with one worker: ${without} MB, with ${MODULES} modules ${withModules} MB: ${withModules - without} MB more.\n`,
);

function measure(flags: readonly string[]): number {
  const args = [...SCRIPT_THREAD_OPTIONS, packagePath('dist/scripts/bench/data-plane.js'), '--seconds=1', ...flags];
  return Number.parseFloat(execFileSync(process.execPath, args, { encoding: 'utf8' }));
}

/** Returns the resident memory of a Baton with that many modules, each in a chain of filters, after some requests; in MB. */
async function memoryOf(modules: number): Promise<number> {
  const directory = mkdtempSync(join(tmpdir(), 'baton-bench-'));
  const filters = Array.from({ length: modules }, (_, index) => join(directory, `filter${index}.ts`));
  for (const file of filters) writeFileSync(file, MODULE);
  const baton = await startBaton({ filters });
  try {
    for (let i = 0; i < 100; i++) await (await baton.fetch('/')).text();
    return residentMb(baton.pid);
  } finally {
    await baton.stop();
    rmSync(directory, { recursive: true, force: true });
  }
}

function residentMb(pid: number): number {
  const [, kilobytes] = /^Rss:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/smaps_rollup`, 'utf8'))!;
  return Math.round(Number(kilobytes) / 1024);
}
