// Memory and start-up time of a fresh process.

import { setTimeout } from 'node:timers/promises';
import { descriptorLimit, end, residentBytes, spawnPinned } from '../processes.js';
import { median } from '../statistics.js';
import type { Environment } from './environment.js';
import { type Peer, startPeer } from './peers/peer.js';

export interface Footprint {
  /** Median time to the first response over three starts. */
  startUpMs: number;
  idleBytes: number;
  connections: number;
  /** Resident size with that many idle connections, each after one request. */
  connectedBytes: number;
}

const STARTS = 3;
/** When the memory is read after the first response. */
const SETTLED_MS = 2000;
/** The relay opens an upstream connection for each client, and HAProxy reserves descriptors for that. */
const TWO_DESCRIPTORS = ['relay', 'haproxy'];
/** Descriptors that a proxy needs in addition to those of its clients. */
const SPARE_DESCRIPTORS = 500;

/** Starts the peer three times; the last one's memory is read before and while idle connections are open. */
export async function measureFootprint(peer: Peer, environment: Environment, wanted: number): Promise<Footprint> {
  const startUps: number[] = [];
  for (let start = 1; start < STARTS; start++) {
    const running = await startPeer(peer, environment);
    startUps.push(running.startUpMs);
    await running.stop();
  }
  const running = await startPeer(peer, environment);
  startUps.push(running.startUpMs);
  await setTimeout(SETTLED_MS);
  const idleBytes = residentBytes(running.pid);
  const perClient = TWO_DESCRIPTORS.includes(peer.name) ? 2 : 1;
  const connections = Math.min(wanted, Math.floor((descriptorLimit() - SPARE_DESCRIPTORS) / perClient));
  const args = [String(running.ports.http), String(connections)];
  const opener = spawnPinned(environment.cores.load, environment.programs.idle, args, {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  await new Promise<void>((resolve, reject) => {
    opener.stdout!.once('data', () => resolve());
    opener.once('exit', (code) => reject(new Error(`opening idle connections ended with status ${code}`)));
  });
  const connectedBytes = residentBytes(running.pid);
  await end(opener);
  await running.stop();
  return { startUpMs: median(startUps), idleBytes, connections, connectedBytes };
}
