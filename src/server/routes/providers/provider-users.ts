// The users of a provider's routes, which wait until these have arrived.

import type { RouteFilters } from '../../../extensions/factories.js';

/** A user of a provider. */
export interface ProviderUser {
  /** Returns the filters of the chains in which it uses the routes. */
  filters(): Iterable<RouteFilters>;
  /** Called when routes have arrived, or are not awaited any longer. Called at most once. */
  ready(): void;
}

export class ProviderUsers {
  readonly #users = new Set<ProviderUser>();
  #isSettled = false;

  /** Adds a user. Its ready() is called at once when nothing is awaited. */
  add(user: ProviderUser): void {
    this.#users.add(user);
    if (this.#isSettled) user.ready();
  }

  remove(user: ProviderUser): void {
    this.#users.delete(user);
  }

  get isEmpty(): boolean {
    return this.#users.size === 0;
  }

  get isSettled(): boolean {
    return this.#isSettled;
  }

  /** Called when nothing is awaited any more. */
  settle(): void {
    this.#isSettled = true;
    for (const user of this.#users) user.ready();
  }

  /** Yields the filters of all users. */
  *filters(): Generator<RouteFilters, void> {
    for (const user of this.#users) yield* user.filters();
  }
}
