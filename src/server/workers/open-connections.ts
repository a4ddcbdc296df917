// Adds up the open connections that the workers report.

import type { OpenCounts, WorkerConnections } from '../../worker/messages/messages.js';

export interface OpenConnections extends WorkerConnections {
  /** False when a worker has not answered in time: the sums may be too low. */
  readonly isComplete: boolean;
}

export function openConnections(answers: readonly WorkerConnections[], workers: number): OpenConnections {
  const listeners = new Map<number, OpenCounts>();
  let closing = 0;
  let accepting = 0;
  for (const answer of answers) {
    closing += answer.closing;
    accepting += answer.accepting;
    for (const [id, counts] of answer.listeners) {
      const { connections = 0, requests = 0 } = listeners.get(id) ?? {};
      const sum = { connections: connections + counts.connections, requests: requests + counts.requests };
      listeners.set(id, { ...counts, ...sum });
    }
  }
  return { listeners, closing, accepting, isComplete: answers.length === workers };
}

/**
 * Returns whether no client's connection is open and every byte is delivered. Pools keep idle connections to internal listeners, which
 * no client waits for.
 */
export function isQuiet({ closing, isComplete, listeners }: OpenConnections): boolean {
  const open = [...listeners.values()].map((each) => (each.isInternal ? each.requests : each.connections));
  return isComplete && closing === 0 && open.every((count) => count === 0);
}
