// What is published to workers, and later removed from them: listener versions and filter chains, identified by numbers.

/** A listener version or a filter chain in its published form. */
export interface PublishedItem {
  /** See newId(). */
  readonly id: number;
  /** Called before workers remove it. Returns the keys of scopes without another holder. */
  retire(): string[];
  /** Called after retire(), when no worker has it any more. */
  free(): void;
}

let lastId = 0;

/** Returns an id that no listener version and no filter chain has had. */
export function newId(): number {
  return ++lastId;
}
