// Who uses the routes of a provider, and waits until they are there.

import type { RouteFilters } from '../../../extensions/factories.js';

/** Who uses a provider. */
export interface ProviderUser {
  /** Those of the chains that it uses the routes for. */
  filters(): Iterable<RouteFilters>;
  /** Routes are there, or will not come for now. Called once at most. */
  ready(): void;
}

export class ProviderUsers {
  readonly #users = new Set<ProviderUser>();
  #isSettled = false;

  /** It is told when it can go on: at once when nothing is waited for any more. */
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

  /** Nothing is waited for any more. */
  settle(): void {
    this.#isSettled = true;
    for (const user of this.#users) user.ready();
  }

  /** Of all of them. */
  *filters(): Generator<RouteFilters, void> {
    for (const user of this.#users) yield* user.filters();
  }
}
