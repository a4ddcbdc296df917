// Baton's hot restart, with the times documented in docs/hot-restart.md.

import {
  bootstrap,
  type Config,
  httpListener,
  routeAllTo,
  staticCluster,
  tcpListener,
} from '../../../test/e2e/harness/bootstrap.js';
import type { Teardown } from '../../../test/e2e/harness/index.js';
import { Epochs } from '../../../test/e2e/restart/epochs.js';
import { DEADLINE_MS, OLD_LIVES_SECONDS, type Place, type RestartablePeer } from './peer.js';

const TIMES = { '--drain-time-s': '1', '--parent-shutdown-time-s': String(OLD_LIVES_SECONDS) };

/** Returns Baton, started with additional arguments, which may set other times. The teardown ends all remaining processes. */
export function baton(t: Teardown, name: string, more: readonly string[] = []): RestartablePeer {
  const times = Object.entries(TIMES).filter(([option]) => !more.includes(option));
  return {
    name,
    start: async (place, workers) => {
      const args = [...times.flat(), ...more];
      const epochs = new Epochs(t, { config: configure(place), args, deadlineMs: DEADLINE_MS });
      await epochs.next(workers);
      return {
        replace: (count) => epochs.next(count),
        oldHasGone: () => epochs.previousExits(),
        stop: () => epochs.current.stop(DEADLINE_MS),
      };
    },
  };
}

function configure({ ports, origin }: Place): Config {
  return bootstrap({
    listeners: [
      httpListener('http', ports.http, { route_config: routeAllTo('origin', { timeout: '3600s' }) }),
      tcpListener('tcp', ports.tcp, { cluster: 'origin_tcp' }),
    ],
    clusters: [staticCluster('origin', origin.http), staticCluster('origin_tcp', origin.tcp)],
  });
}
