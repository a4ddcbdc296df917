// Shared by all measurements: the compiled helper programs, a directory for files, the upstream.

import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { packagePath } from '../../../src/common/package/package-root.js';
import { freePort } from '../../../test/e2e/harness/environment.js';
import { type Cores, chooseCores, end, spawnPinned } from '../processes.js';
import { makeTlsFiles, type TlsFiles } from './certificates.js';
import { startHttp2Hosts } from './peers/http2-hosts.js';
import { startSecureHost } from './peers/secure-host.js';
import { timeToFirstAnswer } from './start-up.js';
import { GRPC_MESSAGE, GRPC_PATH, GRPC_STREAM, GRPC_STREAM_PATH } from './workloads.js';

export interface Environment {
  cores: Cores;
  directory: string;
  upstreamPort: number;
  /** Of a host that speaks TLS. */
  secureUpstreamPort: number;
  /** Of a host that speaks HTTP/2, and of one of gRPC, both without TLS. */
  http2Port: number;
  grpcPort: number;
  tls: TlsFiles;
  /** Absolute paths of the compiled programs. */
  programs: { relay: string; idle: string };
  /** Files with the request bodies of calls of gRPC, by path. */
  grpcBodies: Readonly<Record<string, string>>;
  /** Ends the upstreams. */
  stop(): Promise<void>;
}

/** Compiles the helpers, starts the upstream, and registers the cleanup at the end of the process. */
export async function prepareEnvironment(): Promise<Environment> {
  const cores = chooseCores();
  const directory = mkdtempSync(join(tmpdir(), 'baton-bench-'));
  process.once('exit', () => rmSync(directory, { recursive: true, force: true }));
  const compile = (name: string): string => {
    const program = join(directory, name);
    const source = packagePath('scripts/bench/native', `${name}.c`);
    execFileSync(process.env.CC ?? 'cc', ['-O2', '-o', program, source], { stdio: 'inherit' });
    return program;
  };
  const upstreamPort = await freePort();
  const upstream = spawnPinned(cores.load, compile('upstream'), [String(upstreamPort)]);
  await timeToFirstAnswer(upstreamPort);
  const tls = makeTlsFiles(directory);
  const secureUpstreamPort = await freePort();
  const secureHost = startSecureHost(cores.load, directory, secureUpstreamPort, tls);
  const [http2Port, grpcPort] = [await freePort(), await freePort()];
  const http2Hosts = startHttp2Hosts(cores.load, directory, [http2Port, grpcPort]);
  const grpcBodies = {
    [GRPC_PATH]: join(directory, 'grpc-message'),
    [GRPC_STREAM_PATH]: join(directory, 'grpc-stream'),
  };
  writeFileSync(grpcBodies[GRPC_PATH]!, GRPC_MESSAGE);
  writeFileSync(grpcBodies[GRPC_STREAM_PATH]!, GRPC_STREAM);
  const programs = { relay: compile('relay'), idle: compile('idle') };
  const stop = async () => void (await Promise.all([upstream, secureHost, ...http2Hosts].map(end)));
  const ports = { upstreamPort, secureUpstreamPort, http2Port, grpcPort };
  return { cores, directory, ...ports, tls, programs, grpcBodies, stop };
}
