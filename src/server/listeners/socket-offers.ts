// The listen sockets as a child process sees them: by numbers that hold until they are offered anew.

import type { Offer } from '../../restart/parent-end.js';
import type { PrimaryListener } from './version/primary-listener.js';

export class SocketOffers {
  readonly #active: ReadonlyMap<string, PrimaryListener>;
  #offered: PrimaryListener[] = [];

  /** `active` are listeners by name, now and later. */
  constructor(active: ReadonlyMap<string, PrimaryListener>) {
    this.#active = active;
  }

  /** What a child process may take over. */
  make(): Offer[] {
    this.#offered = [];
    return this.more();
  }

  /** What it may take over besides, since the last make() or more(). */
  more(): Offer[] {
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

  /** The listeners, as they are by now, whose sockets have these numbers since the last make(). */
  withNumbers(ids: ReadonlySet<number>): Set<PrimaryListener> {
    const lineages = new Set(this.#offered.filter((_, id) => ids.has(id)).map(({ lineage }) => lineage));
    return new Set([...this.#active.values()].filter(({ lineage }) => lineages.has(lineage)));
  }
}
