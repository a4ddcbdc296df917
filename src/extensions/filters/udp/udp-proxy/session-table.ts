// The sessions of a UDP proxy, by the ends of their datagrams.

import type { Datagram, PathKey } from '../../../sdk.js';

export class SessionTable<S> {
  /** By local address, then by peer. Only sockets on all addresses have more than one local address. */
  readonly #byLocal = new Map<PathKey, Map<PathKey, S>>();
  #size = 0;

  get size(): number {
    return this.#size;
  }

  find(datagram: Datagram): S | undefined {
    return this.#byLocal.get(datagram.localKey)?.get(datagram.peerKey);
  }

  add(localKey: PathKey, peerKey: PathKey, session: S): void {
    let peers = this.#byLocal.get(localKey);
    if (peers === undefined) this.#byLocal.set(localKey, (peers = new Map()));
    if (!peers.has(peerKey)) this.#size++;
    peers.set(peerKey, session);
  }

  delete(localKey: PathKey, peerKey: PathKey): void {
    const peers = this.#byLocal.get(localKey);
    if (peers?.delete(peerKey) !== true) return;
    this.#size--;
    if (peers.size === 0) this.#byLocal.delete(localKey);
  }

  *[Symbol.iterator](): Generator<S> {
    for (const peers of this.#byLocal.values()) yield* peers.values();
  }
}
