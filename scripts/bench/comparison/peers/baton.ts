// Baton with one worker; statistics, x-request-id and x-forwarded-for are on, as by default.

import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import {
  bootstrap,
  type Config,
  fileAccessLog,
  httpListener,
  routeAllTo,
  staticCluster,
  tcpListener,
} from '../../../../test/e2e/harness/bootstrap.js';
import { spawnPinned } from '../../processes.js';
import type { Peer, Ports } from './peer.js';

/** Returns a Baton that is started by this command and these arguments. */
export function baton([command, ...args]: string[]): Peer {
  return {
    name: 'baton',
    supports: () => true,
    start: ({ cores, directory, upstreamPort }, ports) => {
      const configuration = join(directory, 'baton.json');
      const logFiles = [join(directory, 'baton-http.log'), join(directory, 'baton-tcp.log')];
      for (const file of logFiles) writeFileSync(file, '');
      writeFileSync(configuration, JSON.stringify(envoyConfiguration(upstreamPort, ports, logFiles)));
      const all = [...args, '-c', configuration, '--concurrency', '1', '--disable-hot-restart', '-l', 'error'];
      return { child: spawnPinned(cores.proxy, command!, all), logFiles };
    },
  };
}

/** Returns the configuration that Baton and Envoy share. */
export function envoyConfiguration(upstreamPort: number, ports: Ports, [httpLog, tcpLog]: string[]): Config {
  // A long request timeout, like the peers': its timer is part of the work, but it must not fire.
  const manager = { use_remote_address: true, route_config: routeAllTo('origin', { timeout: '3600s' }) };
  const log = (path: string): Config => ({ access_log: [fileAccessLog(path)] });
  return bootstrap({
    listeners: [
      httpListener('http', ports.http, manager),
      httpListener('http_logged', ports.httpLogged, { ...manager, ...log(httpLog!) }),
      tcpListener('tcp', ports.tcp, { cluster: 'origin' }),
      tcpListener('tcp_logged', ports.tcpLogged, { cluster: 'origin', ...log(tcpLog!) }),
    ],
    clusters: [staticCluster('origin', upstreamPort)],
  });
}
