// Memory and start-up time of a fresh process.

import type { ChildProcess } from 'node:child_process';
import { join } from 'node:path';
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
  /** Bytes of each idle connection with TLS 1.3; undefined: the peer has none. */
  bytesOfTls: number | undefined;
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
  const opener = await opened(
    spawnPinned(environment.cores.load, environment.programs.idle, args, { stdio: ['pipe', 'pipe', 'inherit'] }),
  );
  const connectedBytes = residentBytes(running.pid);
  await end(opener);
  await running.stop();
  const bytesOfTls = peer.name === 'relay' ? undefined : await measureTls(peer, environment);
  return { startUpMs: median(startUps), idleBytes, connections, connectedBytes, bytesOfTls };
}

const TLS_CONNECTIONS = 2000;
/** What the first handshakes allocate is not of a connection. */
const TLS_WARM_UP = 200;

async function measureTls(peer: Peer, environment: Environment): Promise<number> {
  const running = await startPeer(peer, environment);
  const first = await openTls(running.ports.https, TLS_WARM_UP, environment);
  const before = residentBytes(running.pid);
  const rest = await openTls(running.ports.https, TLS_CONNECTIONS, environment);
  const after = residentBytes(running.pid);
  await Promise.all([end(first), end(rest)]);
  await running.stop();
  return (after - before) / TLS_CONNECTIONS;
}

function openTls(port: number, count: number, { cores }: Environment): Promise<ChildProcess> {
  const args = [join(import.meta.dirname, 'idle-tls.js'), String(port), String(count)];
  return opened(spawnPinned(cores.load, process.execPath, args, { stdio: ['pipe', 'pipe', 'inherit'] }));
}

/** Resolves when the program has opened its connections. */
async function opened(opener: ChildProcess): Promise<ChildProcess> {
  await new Promise<void>((resolve, reject) => {
    opener.stdout!.once('data', () => resolve());
    opener.once('exit', (code) => reject(new Error(`opening idle connections ended with status ${code}`)));
  });
  return opener;
}
