// The interface of a compared proxy, and of a running one.

import type { ChildProcess } from 'node:child_process';
import { truncateSync } from 'node:fs';
import { freePort } from '../../../../test/e2e/harness/environment.js';
import { end } from '../../processes.js';
import type { Environment } from '../environment.js';
import { timeToFirstAnswer } from '../start-up.js';
import { isSecure, type Workload } from '../workloads.js';

/** The ports of a proxy: HTTP and TCP, each without and with an access log; HTTPS with keys of two kinds, and HTTPS to a host with TLS. */
export interface Ports {
  http: number;
  httpLogged: number;
  tcp: number;
  tcpLogged: number;
  https: number;
  httpsRsa: number;
  reencrypted: number;
}

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
  const ports = { http: 0, httpLogged: 0, tcp: 0, tcpLogged: 0, https: 0, httpsRsa: 0, reencrypted: 0 };
  for (const name of Object.keys(ports)) ports[name as keyof Ports] = await freePort();
  return ports;
}

/** Returns the port for a workload. */
export function portFor(workload: Workload, ports: Ports): number {
  if (isSecure(workload)) return ports[workload.protocol];
  if (workload.protocol === 'http') return workload.logged ? ports.httpLogged : ports.http;
  return workload.logged ? ports.tcpLogged : ports.tcp;
}
