// A real Envoy with one worker, and the configuration of Baton.

import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { spawnPinned } from '../../processes.js';
import { envoyConfiguration } from './baton.js';
import { luaFilter } from './filters.js';
import type { Peer } from './peer.js';

/** Returns the Envoy whose binary is `program`. */
export function envoy(program: string): Peer {
  return {
    name: 'envoy',
    supports: () => true,
    start: (environment, ports) => {
      const { cores, directory } = environment;
      const configuration = join(directory, 'envoy.json');
      const logFiles = [join(directory, 'envoy-http.log'), join(directory, 'envoy-tcp.log')];
      for (const file of logFiles) writeFileSync(file, '');
      writeFileSync(configuration, JSON.stringify(envoyConfiguration(environment, ports, logFiles, luaFilter())));
      const args = ['-c', configuration, '--concurrency', '1', '--disable-hot-restart', '-l', 'error'];
      return { child: spawnPinned(cores.proxy, program, args), logFiles };
    },
  };
}
