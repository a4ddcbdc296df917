// The open connections of a listener.

/** An element, in at most one list at a time. */
export interface Listed {
  /** Index in its list. */
  place: number;
}

/**
 * An unordered list. Not a Set, which allocates a new table after every as many changes as it has entries: once its table is in
 * V8's old generation, the next ones are allocated there too. Unused tables stay until a full collection and keep their entries
 * alive.
 */
export class ConnectionList<C extends Listed> implements Iterable<C> {
  readonly #connections: C[] = [];

  get count(): number {
    return this.#connections.length;
  }

  add(connection: C): void {
    connection.place = this.#connections.push(connection) - 1;
  }

  /** Removes a connection; the last one takes its place. A no-op if it is not in the list. */
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
