// HAProxy's reload: its master re-executes itself on USR2, and gets the listen sockets from the old worker.

import { spawn } from 'node:child_process';
import { openSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import {
  childrenOf,
  newChildren,
  OLD_LIVES_SECONDS,
  type Place,
  processHasGone,
  type RestartablePeer,
} from './peer.js';

export const haproxy: RestartablePeer = {
  name: 'haproxy',
  start: async ({ directory, ports, origin }, workers) => {
    const configuration = join(directory, 'haproxy.cfg');
    const configure = (count: number): void =>
      writeFileSync(configuration, configurationText(directory, ports, origin, count));
    configure(workers);
    const log = openSync(join(directory, 'haproxy.log'), 'a');
    const master = spawn('haproxy', ['-W', '-f', configuration], { stdio: ['ignore', log, log], cwd: directory });
    const pid = master.pid;
    if (pid === undefined) throw new Error('haproxy could not be started');
    const insist = (): void => void master.kill('SIGKILL');
    process.once('exit', insist);
    await newChildren(pid, 1);
    let old: number[] = [];
    return {
      replace: async (count) => {
        configure(count);
        old = childrenOf(pid);
        const begun = performance.now();
        master.kill('SIGUSR2');
        await newChildren(pid, 1, new Set(old));
        return performance.now() - begun;
      },
      oldHasGone: async () => {
        for (const worker of old) await processHasGone(worker);
      },
      stop: async () => {
        const gone = new Promise((resolve) => master.once('exit', resolve));
        master.kill('SIGTERM');
        await gone;
        process.removeListener('exit', insist);
      },
    };
  },
};

function configurationText(directory: string, ports: Place['ports'], origin: Place['origin'], threads: number): string {
  return `
global
  nbthread ${threads}
  maxconn 4000
  stats socket ${join(directory, 'haproxy.sock')} mode 600 level admin expose-fd listeners
  hard-stop-after ${OLD_LIVES_SECONDS}s
defaults
  mode http
  timeout connect 5s
  timeout client 1h
  timeout server 1h
  backlog 4096
  http-reuse always
  option http-keep-alive
  # Without it idle connections are closed unannounced as soon as the reload begins.
  option idle-close-on-response
frontend http
  bind 127.0.0.1:${ports.http}
  default_backend origin
backend origin
  server origin 127.0.0.1:${origin.http}
listen tcp
  mode tcp
  bind 127.0.0.1:${ports.tcp}
  server origin 127.0.0.1:${origin.tcp}
`;
}
