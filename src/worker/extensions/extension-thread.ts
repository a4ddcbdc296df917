// What a worker gives to extensions that wait for something: they may do so behind an event of Node, where no turn has begun.

import type { Timers } from '../../io/time/timing-wheel.js';
import type { CallingThread } from '../../upstream/calling-thread.js';
import type { ClusterManager } from '../../upstream/cluster-manager.js';
import type { UpstreamThread } from '../../upstream/upstream-thread.js';

/** Calls of the worker's own, as the primary makes them too. */
export function callsOf(thread: UpstreamThread, clusters: ClusterManager): CallingThread {
  return {
    begin() {
      thread.transport.beginTurn();
      return thread;
    },
    reference: (name) => clusters.reference(name),
  };
}

/** Timers that count from now, wherever they are set. Within a turn that costs nothing. */
export function timersOf({ transport, wheel }: UpstreamThread): Timers {
  return {
    reschedule(timer, delayMs) {
      transport.beginTurn();
      wheel.reschedule(timer, delayMs);
    },
    cancel: (timer) => wheel.cancel(timer),
  };
}
