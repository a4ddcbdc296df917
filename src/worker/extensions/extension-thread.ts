// The interfaces that a worker provides to extensions that wait: these may be used in an event of Node, in which no turn has
// begun.

import type { Timers } from '../../io/time/timing-wheel.js';
import type { CallingThread } from '../../upstream/calling-thread.js';
import type { ClusterManager } from '../../upstream/cluster-manager.js';
import type { UpstreamThread } from '../../upstream/upstream-thread.js';

/** Returns an interface for the worker's own calls, like the primary's. `ip`: this server's own address. */
export function callsOf(thread: UpstreamThread, clusters: ClusterManager, ip: string): CallingThread {
  return {
    ip,
    begin() {
      thread.transport.beginTurn();
      return thread;
    },
    reference: (name) => clusters.reference(name),
  };
}

/** Returns timers that are relative to the current time outside of turns, too. Within a turn that costs nothing. */
export function timersOf({ transport, wheel }: UpstreamThread): Timers {
  return {
    reschedule(timer, delayMs) {
      transport.beginTurn();
      wheel.reschedule(timer, delayMs);
    },
    cancel: (timer) => wheel.cancel(timer),
  };
}
