// Leaks after updates of listeners, routes, clusters and endpoints: memory, shared words, stats and descriptors.

import minimist from 'minimist';
import { ChangingProxy } from '../../test/e2e/dynamic/changing-proxy.js';
import {
  descriptorsOf,
  type Held,
  heldReportOptions,
  readHeldResources,
} from '../../test/e2e/dynamic/held-resources.js';
import { FileSource, type ResourceSource, StreamSource } from '../../test/e2e/dynamic/sources.js';
import { startUpstream, type Teardown, tempDir } from '../../test/e2e/harness/index.js';
import { describeMachine, markdown } from './report.js';

const USAGE = `npm run bench:dynamic -- [options]

  --updates=N      how many updates (default 10000)
  --source=NAME    files (default), sotw or delta: where resources come from
  --workers=N      (default 2)
  --scale          instead of these figures: 10,000 clusters with 100,000 endpoints, and 120 updates a minute under traffic; beside Envoy
                   if the environment variable ENVOY is the path of its binary
  --seconds=N      of updates with --scale (default 60)
`;

/** Rows of the table, the first one before any update. */
const ROWS = 5;
const UPDATES_A_ROUND = 5;

interface Row {
  readonly updates: number;
  readonly held: Held;
  readonly descriptors: number;
  /** Since the previous row. */
  readonly updatesPerSecond: number;
}

async function main(argv: string[]): Promise<void> {
  if (argv.includes('--help')) return void process.stdout.write(USAGE);
  const args = minimist(argv, {
    boolean: ['scale'],
    string: ['updates', 'source', 'workers', 'seconds'],
    unknown: (name) => {
      throw new Error(`unknown argument ${name}`);
    },
  });
  const rounds = Math.ceil(Number(args['updates'] ?? 10_000) / UPDATES_A_ROUND);
  const actions: (() => unknown)[] = [];
  const t: Teardown = { teardown: (action) => actions.unshift(action) };
  try {
    if (args['scale']) {
      // Loads the schema.
      const { measureScale } = await import('./dynamic/scale.js');
      const figures = await measureScale(t, Number(args['seconds'] ?? 60));
      process.stdout.write(`${describeMachine([])}\n\n${figures}\n`);
      return;
    }
    const source = await sourceOf(t, String(args['source'] ?? 'files'));
    const rows = await measure(t, source, rounds, String(args['workers'] ?? '2'));
    process.stdout.write(`${describeMachine([])}\n\n${table(rows)}\n`);
  } finally {
    for (const action of actions) await action();
  }
}

async function sourceOf(t: Teardown, name: string): Promise<ResourceSource> {
  if (name === 'files') return new FileSource(tempDir(t));
  if (name !== 'sotw' && name !== 'delta') throw new Error(`unknown source ${name}`);
  // Loads the schema.
  const { startControlPlane } = await import('../../test/e2e/harness/control-plane.js');
  return new StreamSource(await startControlPlane(t), name);
}

async function measure(t: Teardown, source: ResourceSource, rounds: number, workers: string): Promise<Row[]> {
  const origins = [await startUpstream(t, (_, answer) => void answer.end())];
  origins.push(await startUpstream(t, (_, answer) => void answer.end()));
  const { socketPath, ...options } = heldReportOptions(tempDir(t));
  const proxy = await ChangingProxy.start(t, source, {
    ...options,
    origins: origins.map(({ port }) => port),
    tcpOrigin: origins[0]!.port,
    args: ['-l', 'warning', '--drain-time-s', '0', '--concurrency', workers],
  });
  const rows: Row[] = [];
  let done = 0;
  for (let row = 0; row < ROWS; row++) {
    const started = performance.now();
    const due = Math.round((rounds * row) / (ROWS - 1));
    await proxy.rounds(due - done);
    const seconds = (performance.now() - started) / 1000;
    rows.push({
      updates: due * UPDATES_A_ROUND,
      updatesPerSecond: ((due - done) * UPDATES_A_ROUND) / seconds,
      held: await readHeldResources(socketPath),
      descriptors: descriptorsOf(proxy.baton.pid),
    });
    done = due;
  }
  process.stdout.write(proxy.baton.stderr);
  await proxy.baton.stop();
  return rows;
}

function table(rows: readonly Row[]): string {
  const threads = Math.max(...rows.map(({ held }) => held.heaps.length));
  const heaps = Array.from({ length: threads }, (_, index) => `heap ${index === 0 ? 'primary' : index} MB`);
  return markdown(
    ['updates', 'a second', 'rss MB', ...heaps, 'words', 'highest word', 'scopes', 'stats', 'directory', 'descriptors'],
    rows.map(({ updates, updatesPerSecond, held, descriptors }) => [
      String(updates),
      updates === 0 ? '' : updatesPerSecond.toFixed(0),
      megabytes(held.rssBytes),
      ...Array.from({ length: threads }, (_, index) => megabytes(held.heaps[index]?.bytes)),
      String(held.words),
      String(held.highestWord),
      String(held.scopes),
      String(held.stats),
      String(held.directoryEnd),
      String(descriptors),
    ]),
  );
}

function megabytes(bytes: number | undefined): string {
  return bytes === undefined ? '' : (bytes / 2 ** 20).toFixed(1);
}

await main(process.argv.slice(2));
