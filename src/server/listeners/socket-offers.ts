// The listen sockets as offered to a child process, with numbers that are valid until the next offer.

import type { Offer } from '../../restart/parent-end.js';
import type { PrimaryListener } from './version/primary-listener.js';

export class SocketOffers {
  readonly #active: ReadonlyMap<string, PrimaryListener>;
  #offered: PrimaryListener[] = [];

  /** `active`: the live map of listeners by name. */
  constructor(active: ReadonlyMap<string, PrimaryListener>) {
    this.#active = active;
  }

  /** Returns everything that a child process may take over. */
  offerAll(): Offer[] {
    this.#offered = [];
    return this.offerNew();
  }

  /** Returns what the child may take over in addition, since the last call of offerAll() or offerNew(). */
  offerNew(): Offer[] {
    const known = new Set(this.#offered.map(({ lineage }) => lineage));
    const offers: Offer[] = [];
    for (const listener of this.#active.values()) {
      const offer = known.has(listener.lineage) ? undefined : listener.offer(this.#offered.length);
      if (offer === undefined) continue;
      this.#offered.push(listener);
      offers.push(offer);
    }
    return offers;
  }

  /** Returns the present listeners whose sockets have had these numbers since the last offerAll(). */
  withNumbers(ids: ReadonlySet<number>): Set<PrimaryListener> {
    const lineages = new Set(this.#offered.filter((_, id) => ids.has(id)).map(({ lineage }) => lineage));
    return new Set([...this.#active.values()].filter(({ lineage }) => lineages.has(lineage)));
  }
}
