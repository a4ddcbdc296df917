// The interface of a compared proxy, and of a running one.

import type { ChildProcess } from 'node:child_process';
import { truncateSync } from 'node:fs';
import { freePort } from '../../../../test/e2e/harness/environment.js';
import { end } from '../../processes.js';
import type { Environment } from '../environment.js';
import { timeToFirstAnswer } from '../start-up.js';
import type { Workload } from '../workloads.js';

/**
 * The ports of a proxy: HTTP and TCP, each without and with an access log; HTTPS, also without resumption with keys of two
 * kinds, and HTTPS to a host with TLS; HTTP/2
 * without and with TLS, to a host of HTTP/2, and of gRPC; HTTP with a filter in a script and with a built-in one,
 * with tracing, and with filters that only Baton and Envoy have.
 */
export interface Ports {
  http: number;
  httpLogged: number;
  tcp: number;
  tcpLogged: number;
  https: number;
  httpsEcdsaOnce: number;
  httpsRsaOnce: number;
  reencrypted: number;
  h2c: number;
  h2: number;
  h2ToH2: number;
  grpc: number;
  script: number;
  mutation: number;
  traced: number;
  lua: number;
  rbac: number;
  jwt: number;
  extAuthz: number;
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
  const plain = {
    http: 0,
    httpLogged: 0,
    tcp: 0,
    tcpLogged: 0,
    script: 0,
    mutation: 0,
    traced: 0,
    lua: 0,
    rbac: 0,
    jwt: 0,
    extAuthz: 0,
  };
  const ports = {
    ...plain,
    https: 0,
    httpsEcdsaOnce: 0,
    httpsRsaOnce: 0,
    reencrypted: 0,
    h2c: 0,
    h2: 0,
    h2ToH2: 0,
    grpc: 0,
  };
  const taken = new Set<number>();
  for (const name of Object.keys(ports)) {
    let port = await freePort();
    // The kernel may choose a port again that nothing listens on yet.
    while (taken.has(port)) port = await freePort();
    taken.add(port);
    ports[name as keyof Ports] = port;
  }
  return ports;
}

/** Returns the port for a workload. */
export function portFor(workload: Workload, ports: Ports): number {
  const { logged, protocol } = workload;
  if (logged && protocol === 'http') return ports.httpLogged;
  if (logged && protocol === 'tcp') return ports.tcpLogged;
  return ports[protocol];
}
