// Counts of open connections and their requests.

import type { DownstreamConnection } from './downstream-connection.js';

/** Open connections and requests. */
export class OpenConnections {
  connections = 0;
  requests = 0;
  /** They are those of an internal listener: idle ones have no client. */
  readonly isInternal: boolean;

  constructor(isInternal = false) {
    this.isInternal = isInternal;
  }

  add({ handler }: DownstreamConnection): void {
    this.connections++;
    this.requests += handler?.activeRequests ?? 0;
  }
}
