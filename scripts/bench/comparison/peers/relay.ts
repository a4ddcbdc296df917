// The lower bound: a C program that only copies bytes (native/relay.c). It has one port and no log.

import { spawnPinned } from '../../processes.js';
import { isOnce } from '../workloads.js';
import type { Peer } from './peer.js';

export const relay: Peer = {
  name: 'relay',
  // It does not parse Connection headers.
  supports: (workload) => !workload.logged && !isOnce(workload) && ['http', 'tcp'].includes(workload.protocol),
  start: ({ cores, upstreamPort, programs }, ports) => {
    ports.tcp = ports.http;
    return {
      child: spawnPinned(cores.proxy, programs.relay, [String(ports.http), String(upstreamPort)]),
      logFiles: [],
    };
  },
};
