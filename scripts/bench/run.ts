// The benchmark: compares Baton with nginx, HAProxy, Envoy and a C relay in CPU time per request, latency, memory and startup time.
//
// Every proxy has one core to itself; load generator and upstream share another. All proxies run at once and are loaded one after
// the other, round by round, so that other activity on the machine affects them alike.

import { writeFileSync } from 'node:fs';
import { type Environment, prepareEnvironment } from './comparison/environment.js';
import { type Footprint, measureFootprint } from './comparison/footprint.js';
import { type Measurement, measure } from './comparison/load.js';
import { type BenchOptions, type PeerName, parseOptions, USAGE } from './comparison/options.js';
import { baton } from './comparison/peers/baton.js';
import { envoy } from './comparison/peers/envoy.js';
import { haproxy } from './comparison/peers/haproxy.js';
import { nginx } from './comparison/peers/nginx.js';
import { type Peer, type RunningPeer, startPeer } from './comparison/peers/peer.js';
import { relay } from './comparison/peers/relay.js';
import { WORKLOADS } from './comparison/workloads.js';
import {
  describeMachine,
  footprintTable,
  loadTable,
  progress,
  summarize,
  toJson,
  type WorkloadResult,
} from './report.js';

const WARM_UP_SECONDS = 1;

async function main(argv: string[]): Promise<void> {
  if (argv.includes('--help')) return void process.stdout.write(USAGE);
  if (argv.includes('--list')) return void process.stdout.write(`${WORKLOADS.map(({ name }) => name).join('\n')}\n`);
  const options = parseOptions(argv);
  const environment = await prepareEnvironment();
  const peers = options.peers.map((name) => peerNamed(name, options));

  const footprints = new Map<string, Footprint>();
  if (options.memory) {
    for (const peer of peers) {
      progress(`memory and start-up of ${peer.name}`);
      footprints.set(peer.name, await measureFootprint(peer, environment, options.idleConnections));
    }
  }
  const results = await measureLoad(peers, options, environment);
  await environment.stop();
  progress('');

  const machine = describeMachine(options.peers);
  const rounds = `${options.rounds} rounds of ${options.seconds} s; medians.`;
  process.stdout.write(`${machine} ${rounds}\n\n${loadTable(results)}\n`);
  if (footprints.size > 0) process.stdout.write(`\n${footprintTable(footprints)}\n`);
  if (options.jsonPath !== undefined) writeFileSync(options.jsonPath, toJson(machine, results, footprints));
}

async function measureLoad(peers: Peer[], options: BenchOptions, environment: Environment): Promise<WorkloadResult[]> {
  const running: RunningPeer[] = [];
  for (const peer of peers) running.push(await startPeer(peer, environment));
  const results: WorkloadResult[] = [];
  for (const workload of options.workloads) {
    const able = running.filter(({ peer }) => peer.supports(workload));
    const rounds = new Map<string, Measurement[]>(able.map(({ peer }) => [peer.name, []]));
    for (let round = 0; round <= options.rounds; round++) {
      for (const one of able) {
        progress(`${workload.name}, ${one.peer.name}, ${round === 0 ? 'warm-up' : `round ${round}`}`);
        const seconds = round === 0 ? WARM_UP_SECONDS : options.seconds;
        const measurement = await measure(one, workload, seconds, environment);
        if (round > 0) rounds.get(one.peer.name)!.push(measurement);
        one.emptyLogs();
      }
    }
    results.push({ workload, peers: new Map([...rounds].map(([name, all]) => [name, summarize(all)])) });
  }
  for (const one of running) await one.stop();
  return results;
}

function peerNamed(name: PeerName, options: BenchOptions): Peer {
  if (name === 'baton') return baton(options.batonCommand);
  if (name === 'envoy') return envoy(options.envoyProgram);
  return { nginx, haproxy, relay }[name];
}

main(process.argv.slice(2)).catch((error: unknown) => {
  process.stderr.write(`\nbench: ${error instanceof Error ? error.message : String(error)}\n`);
  // Ends every process that still runs.
  process.exit(1);
});
