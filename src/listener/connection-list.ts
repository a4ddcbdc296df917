// The open connections of a listener.

/** In at most one list at a time. */
export interface Listed {
  /** In its list, as long as it is in one. */
  place: number;
}

/**
 * In no order. Not a Set, which makes a new table each time it has changed as often as it is large: once its table is an old object, V8
 * makes the next ones among the old objects too. Tables that nobody needs are there until a full collection, and what they held
 * outlives all others.
 */
export class ConnectionList<C extends Listed> implements Iterable<C> {
  readonly #connections: C[] = [];

  get count(): number {
    return this.#connections.length;
  }

  add(connection: C): void {
    connection.place = this.#connections.push(connection) - 1;
  }

  /** The last one takes its place. Nothing happens when it is not in the list. */
  remove(connection: C): void {
    const { place } = connection;
    if (this.#connections[place] !== connection) return;
    const last = this.#connections.pop()!;
    if (last === connection) return;
    this.#connections[place] = last;
    last.place = place;
  }

  [Symbol.iterator](): Iterator<C> {
    return this.#connections.values();
  }
}
