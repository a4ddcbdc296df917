// Adds up the open connections that the workers report.

import type { WorkerConnections } from '../../worker/messages/messages.js';

export interface OpenConnections extends WorkerConnections {
  /** False when a worker has not answered in time: the sums may be too low. */
  readonly isComplete: boolean;
}

export function openConnections(answers: readonly WorkerConnections[], workers: number): OpenConnections {
  const listeners = new Map<number, { connections: number; requests: number }>();
  let closing = 0;
  let accepting = 0;
  for (const answer of answers) {
    closing += answer.closing;
    accepting += answer.accepting;
    for (const [id, { connections, requests }] of answer.listeners) {
      const sum = listeners.get(id) ?? { connections: 0, requests: 0 };
      listeners.set(id, { connections: sum.connections + connections, requests: sum.requests + requests });
    }
  }
  return { listeners, closing, accepting, isComplete: answers.length === workers };
}

/** Returns whether no connection is open and every byte is delivered. */
export function isQuiet({ closing, isComplete, listeners }: OpenConnections): boolean {
  return isComplete && closing === 0 && [...listeners.values()].every(({ connections }) => connections === 0);
}
