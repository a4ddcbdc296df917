// Sockets as they come from a parent: those of one offer may be spread over several messages.

import type { OfferedSockets } from './messages.js';

/** Sockets that were handed over; the descriptors are this process's own now. */
export interface ReceivedSockets extends Omit<OfferedSockets, 'count'> {
  readonly fds: readonly number[];
}

/** Of one offer. */
const MAX_SOCKETS = 1024;

export class SocketReceiver {
  readonly #closeDescriptor: (fd: number) => void;
  readonly #sockets = new Map<number, { offered: OfferedSockets; fds: number[] }>();

  constructor(closeDescriptor: (fd: number) => void) {
    this.#closeDescriptor = closeDescriptor;
  }

  /** Those of one message. */
  add(offers: readonly OfferedSockets[], fds: readonly number[]): void {
    let from = 0;
    for (const offered of offers) {
      const known = this.#sockets.get(offered.id);
      const all = fds.slice(from, from + offered.count);
      from += all.length;
      const part = all.slice(0, MAX_SOCKETS - (known?.fds.length ?? 0));
      for (const fd of all.slice(part.length)) this.#closeDescriptor(fd);
      // A name without sockets costs its sender nothing, and would be kept here.
      if (part.length === 0) continue;
      if (known === undefined) this.#sockets.set(offered.id, { offered, fds: part });
      else known.fds.push(...part);
    }
    for (const fd of fds.slice(from)) this.#closeDescriptor(fd);
  }

  /** All that have come since the last call: the caller's now. */
  take(): ReceivedSockets[] {
    const sockets = [...this.#sockets.values()].map(({ offered: { count: _, ...rest }, fds }) => ({ ...rest, fds }));
    this.#sockets.clear();
    return sockets;
  }

  /** Gives back what has come. */
  release(): void {
    for (const { fds } of this.take()) for (const fd of fds) this.#closeDescriptor(fd);
  }
}
