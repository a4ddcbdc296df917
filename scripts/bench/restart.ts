// Failures that clients observe during restarts under load: Baton, nginx and HAProxy, one after the other with the same clients.

import { mkdirSync, writeFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import minimist from 'minimist';
import { freePort, type Teardown, tempDir } from '../../test/e2e/harness/index.js';
import { type Clients, startClients, startOrigin, type Tally } from '../../test/e2e/restart/clients.js';
import { describeMachine, markdown, progress } from './report.js';
import { baton } from './restart/baton.js';
import { haproxy } from './restart/haproxy.js';
import { killsTable, LAST_EPOCH, measureKills } from './restart/kills.js';
import { nginx } from './restart/nginx.js';
import type { RestartablePeer, RunningPeer } from './restart/peer.js';
import { killAtRandom } from './restart/random-kills.js';
import { median } from './statistics.js';

const USAGE = `npm run bench:restart -- [options]

  --only=PART      restarts, kills (default: both of these), or random-kills: processes and wrappers are killed and stopped at random
                   times
  --kills=N        so many of these (default 200)
  --seed=N         repeats their times and order
  --quick          3 restarts of each, 20,000 requests; kills at the first epochs
  --peers=a,b      of nginx, haproxy, baton (default: all)
  --restarts=N     consecutive restarts (default 20)
  --workers=a,b    workers of the first process and of each restarted one (default 2, always); without this and
                   --peers Baton runs twice more: with --hand-over-connections, and with 2, 1, 3 workers
  --requests=N     Baton is loaded until so many were answered (default 1000000)
  --rate=N         requests a second (default 14000; 0 as many as are answered)
  --baton=ARGS     further arguments for Baton
  --json=FILE      also write the figures as JSON
`;

interface Run {
  peer: RestartablePeer;
  /** Of the first and each later process. */
  workers: number[];
  requests: number;
  /** No TCP stream may end, regardless of its age. */
  keepsStreams: boolean;
}

interface Restart {
  liveMs: number;
  /** From the start of the new process until the old one has exited. */
  tally: Tally;
}

interface Result {
  name: string;
  restarts: Restart[];
  /** Including the time before the first and after the last restart. */
  whole: Tally;
  failures: string[];
}

const PARTS: readonly string[] = ['restarts', 'kills', 'random-kills'];
const NO_KILLS = { kills: [], isClean: true };
const HAND_OVER = '--hand-over-connections';

/** Streams that are about as old as the drain time may be ended by the old process. */
const CUT_SECONDS = 0.9;
const WARM_UP_MS = 2000;
const MAX_LOAD_MS = 10 * 60_000;

async function main(argv: string[]): Promise<boolean> {
  if (argv.includes('--help')) return process.stdout.write(USAGE);
  const args = minimist(argv, {
    boolean: ['quick'],
    string: ['only', 'kills', 'seed', 'peers', 'restarts', 'workers', 'requests', 'rate', 'baton', 'json'],
    unknown: (name) => {
      throw new Error(`unknown argument ${name}`);
    },
  });
  const restarts = Number(args.restarts ?? (args.quick ? 3 : 20));
  const requests = Number(args.requests ?? (args.quick ? 20_000 : 1_000_000));
  const always = Array.from({ length: restarts + 1 }, () => 2);
  const workers = args.workers === undefined ? always : String(args.workers).split(',').map(Number);
  const rate = Number(args.rate ?? 14_000);
  const more = args.baton === undefined ? [] : String(args.baton).trim().split(/\s+/);

  const { only } = args;
  if (only !== undefined && !PARTS.includes(only)) throw new Error(`unknown part ${only}`);

  const actions: (() => unknown)[] = [];
  const t: Teardown = { teardown: (action) => actions.unshift(action) };
  try {
    if (only === 'random-kills') {
      const seed = Number(args.seed ?? Date.now() % 1_000_000);
      const count = Number(args.kills ?? 200);
      const report = (defect: string) => void process.stdout.write(`${defect}\n`);
      const defects = await killAtRandom(t, count, seed, report);
      process.stdout.write(`${count} random kills, seed ${seed}: ${defects} defects\n`);
      return defects === 0;
    }
    const results: Result[] = [];
    if (only !== 'kills') for (const run of runsOf()) results.push(await measure(t, run, rate));
    const { kills, isClean } = only === 'restarts' ? NO_KILLS : await measureKills(t, args.quick ? 0 : LAST_EPOCH);
    const machine = `${describeMachine(['nginx', 'haproxy'])} ${availableParallelism()} of its cores.`;
    process.stdout.write(`${machine}\n`);
    if (results.length > 0) process.stdout.write(`${rate} requests a second.\n\n${table(results)}\n`);
    if (kills.length > 0) process.stdout.write(`\n${killsTable(kills)}\n`);
    for (const { name, failures } of results) {
      for (const line of failures.slice(0, 10)) process.stdout.write(`${name}: ${line}\n`);
    }
    if (args.json !== undefined)
      writeFileSync(args.json, `${JSON.stringify({ machine, rate, results, kills }, null, 2)}\n`);
    return isClean && results.every(({ name, whole }) => !name.startsWith('baton') || whole.failures === 0);
  } finally {
    for (const action of actions) await action();
  }

  function runsOf(): Run[] {
    const peers: Record<string, RestartablePeer> = { nginx, haproxy, baton: baton(t, 'baton', more) };
    const runs: Run[] = String(args.peers ?? 'nginx,haproxy,baton')
      .split(',')
      .map((name) => {
        const peer = peers[name];
        if (peer === undefined) throw new Error(`unknown peer ${name}`);
        const isBaton = name === 'baton';
        return { peer, workers, requests: isBaton ? requests : 0, keepsStreams: isBaton && more.includes(HAND_OVER) };
      });
    if (args.peers !== undefined || args.workers !== undefined) return runs;
    const keeping = baton(t, 'baton, connections handed over', [...new Set([...more, HAND_OVER])]);
    runs.push({ peer: keeping, workers, requests: 0, keepsStreams: true });
    runs.push({
      peer: baton(t, 'baton, 2, 1, 3 workers', more),
      workers: [2, 1, 3],
      requests: 0,
      keepsStreams: more.includes(HAND_OVER),
    });
    return runs;
  }
}

async function measure(t: Teardown, { peer, workers, requests, keepsStreams }: Run, rate: number): Promise<Result> {
  const origin = await startOrigin(t);
  const ports = { http: await freePort(), tcp: await freePort() };
  const directory = join(tempDir(t), peer.name);
  mkdirSync(directory);
  const running = await peer.start({ directory, ports, origin }, workers[0]!);
  const clients = startClients(t, ports, keepsStreams ? { rate } : { rate, cut: CUT_SECONDS });
  await pause(WARM_UP_MS);
  const restarts: Restart[] = [];
  for (const [index, count] of workers.slice(1).entries()) {
    progress(`${peer.name}: restart ${index + 1} of ${workers.length - 1}`);
    restarts.push(await restart(running, clients, count));
  }
  progress(`${peer.name}: until ${requests} requests are answered`);
  await untilAnswered(clients, requests, restarts);
  const whole = await clients.finish();
  await running.stop();
  progress('');
  return { name: peer.name, restarts, whole, failures: clients.failures };
}

async function restart(running: RunningPeer, clients: Clients, workers: number): Promise<Restart> {
  await clients.mark();
  const liveMs = await running.replace(workers);
  await running.oldHasGone();
  return { liveMs, tally: await clients.mark() };
}

/** Continues the load without a restart until the number is reached. Throws when it is not reached in time. */
async function untilAnswered(clients: Clients, requests: number, restarts: readonly Restart[]): Promise<void> {
  const end = performance.now() + MAX_LOAD_MS;
  let answered = restarts.reduce((sum, { tally }) => sum + tally.requests, 0);
  while (answered < requests) {
    if (performance.now() > end) throw new Error(`only ${answered} requests were answered`);
    await pause(1000);
    answered += (await clients.mark()).requests;
  }
}

/** Returns one row per run; times are median and maximum over the restarts. */
function table(results: readonly Result[]): string {
  const rows = results.map(({ name, restarts, whole }) => [
    name,
    kinds(whole.failed),
    String(restarts.length),
    String(whole.requests),
    String(whole.connections),
    String(whole.failures),
    both(restarts.map(({ tally }) => tally.longestGapMs)),
    both(restarts.map(({ tally }) => tally.longestStallMs)),
    both(restarts.map(({ tally }) => tally.longestAnswerMs)),
    both(restarts.map(({ liveMs }) => liveMs)),
    String(whole.announced),
    String(whole.repeated),
    String(whole.ended),
  ]);
  return markdown(
    [
      ...[
        'proxy',
        'failures by kind',
        'restarts',
        'requests',
        'connections',
        'failures',
        'gap ms',
        "clients' own pause ms",
      ],
      ...['slowest answer ms', 'to live ms', 'announced', 'repeated', 'streams ended'],
    ],
    rows,
  );
}

function kinds(failed: Record<string, number>): string {
  const present = Object.entries(failed).filter(([, count]) => count > 0);
  return present.length === 0 ? 'none' : present.map(([kind, count]) => `${kind} ${count}`).join(', ');
}

function both(values: number[]): string {
  return `${median(values).toFixed(0)} / ${Math.max(...values).toFixed(0)}`;
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

// exit() ends every running process; a signal alone would not.
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.once(signal, () => process.exit(130));

main(process.argv.slice(2)).then(
  (isClean) => process.exit(isClean ? 0 : 1),
  (error: unknown) => {
    process.stderr.write(`\nbench:restart: ${error instanceof Error ? error.stack : String(error)}\n`);
    // Ends every process that still runs.
    process.exit(1);
  },
);
