// The interface of a compared proxy, and of a running one.

import type { ChildProcess } from 'node:child_process';
import { truncateSync } from 'node:fs';
import { freePort } from '../../../../test/e2e/harness/environment.js';
import { end } from '../../processes.js';
import type { Environment } from '../environment.js';
import { timeToFirstAnswer } from '../start-up.js';
import { POLICY_PORTS, type Workload } from '../workloads.js';

/** The ports of a proxy: each of Workload.protocol, and those with an access log. */
const PORTS = [
  ...(['http', 'httpLogged', 'tcp', 'tcpLogged'] as const),
  ...(['https', 'httpsEcdsaOnce', 'httpsRsaOnce', 'reencrypted'] as const),
  ...(['h2c', 'h2', 'h2ToH2', 'grpc'] as const),
  ...(['script', 'mutation', 'traced'] as const),
  ...POLICY_PORTS,
] as const;
export type Ports = Record<(typeof PORTS)[number], number>;

/** A started process and the access log that it writes. */
export interface Started {
  child: ChildProcess;
  logFiles: string[];
}

export interface Peer {
  name: string;
  /** Writes the configuration and starts the process, pinned to the proxy's core. */
  start(environment: Environment, ports: Ports): Started;
  /** Returns whether the peer supports the workload. */
  supports(workload: Workload): boolean;
}

export interface RunningPeer {
  peer: Peer;
  pid: number;
  ports: Ports;
  startUpMs: number;
  /** Empties the access log, so that a long benchmark does not fill the disk. */
  emptyLogs(): void;
  stop(): Promise<void>;
}

/** Starts a peer on free ports and waits for its first response. */
export async function startPeer(peer: Peer, environment: Environment): Promise<RunningPeer> {
  const ports = await freePorts();
  const { child, logFiles } = peer.start(environment, ports);
  const died = new Promise<never>((_, reject) =>
    child.once('exit', (code) => reject(new Error(`${peer.name} ended at its start with status ${code}`))),
  );
  died.catch(() => {});
  const startUpMs = await Promise.race([timeToFirstAnswer(ports.http), died]);
  return {
    peer,
    pid: child.pid!,
    ports,
    startUpMs,
    emptyLogs: () => {
      for (const file of logFiles) truncateSync(file);
    },
    stop: () => end(child),
  };
}

async function freePorts(): Promise<Ports> {
  const taken = new Set<number>();
  // The kernel may choose a port again that nothing listens on yet.
  while (taken.size < PORTS.length) taken.add(await freePort());
  const ports = [...taken];
  return Object.fromEntries(PORTS.map((name, index) => [name, ports[index]!])) as Ports;
}

/** Returns the port for a workload. */
export function portFor(workload: Workload, ports: Ports): number {
  const { logged, protocol } = workload;
  if (logged && protocol === 'http') return ports.httpLogged;
  if (logged && protocol === 'tcp') return ports.tcpLogged;
  return ports[protocol];
}
