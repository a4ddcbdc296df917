// Collects the sockets of a parent: those of one offer may be spread over several messages.

import { getLogger } from '../log/logger.js';
import type { OfferedSockets } from './messages.js';

/** Sockets that were handed over; this process owns the descriptors. */
export interface ReceivedSockets extends Omit<OfferedSockets, 'count'> {
  readonly fds: readonly number[];
}

/** Maximum number of sockets per offer. */
const MAX_SOCKETS = 1024;
/** Maximum length of the names and addresses of all offers together, in characters. */
export const MAX_OFFERED_TEXT = 32 * 1024 * 1024;

const logger = getLogger('main');

/** Returns the number of characters in the names and addresses of offers. */
export function textOf(offers: readonly OfferedSockets[]): number {
  return offers.reduce(
    (sum, { configured, name, real, traits }) => sum + configured.length + name.length + real.length + traits.length,
    0,
  );
}

export class SocketReceiver {
  readonly #closeDescriptor: (fd: number) => void;
  readonly #sockets = new Map<number, { offered: OfferedSockets; fds: number[] }>();
  #text = 0;
  #isFull = false;

  constructor(closeDescriptor: (fd: number) => void) {
    this.#closeDescriptor = closeDescriptor;
  }

  /** Adds the sockets of one message. */
  add(offers: readonly OfferedSockets[], fds: readonly number[]): void {
    let from = 0;
    for (const offered of offers) {
      const known = this.#sockets.get(offered.id);
      const all = fds.slice(from, from + offered.count);
      from += all.length;
      const part = this.#hasRoom(offered, known !== undefined)
        ? all.slice(0, MAX_SOCKETS - (known?.fds.length ?? 0))
        : [];
      for (const fd of all.slice(part.length)) this.#closeDescriptor(fd);
      // An offer without sockets costs its sender nothing, and would occupy memory here.
      if (part.length === 0) continue;
      if (known === undefined) this.#sockets.set(offered.id, { offered, fds: part });
      else known.fds.push(...part);
    }
    for (const fd of fds.slice(from)) this.#closeDescriptor(fd);
  }

  /** Returns the sockets that were added since the last call; the caller owns them. */
  take(): ReceivedSockets[] {
    const sockets = [...this.#sockets.values()].map(({ offered: { count: _, ...rest }, fds }) => ({ ...rest, fds }));
    this.#sockets.clear();
    this.#text = 0;
    return sockets;
  }

  /** Closes the collected sockets. */
  release(): void {
    for (const { fds } of this.take()) for (const fd of fds) this.#closeDescriptor(fd);
  }

  #hasRoom(offered: OfferedSockets, isKnown: boolean): boolean {
    if (isKnown || offered.count === 0) return true;
    const text = this.#text + textOf([offered]);
    if (text <= MAX_OFFERED_TEXT) {
      this.#text = text;
      return true;
    }
    if (!this.#isFull) logger.warning('the parent process offers too many sockets: their names are too long');
    this.#isFull = true;
    return false;
  }
}
