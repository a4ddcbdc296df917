// What workers are told of, and told to forget: versions of listeners, and filter chains. Numbers are how they are spoken of.

/** A version of a listener, or a filter chain, as workers know it. */
export interface KnownToWorkers {
  /** See newId(). */
  readonly id: number;
  /** Workers are about to forget it. Returns the keys of scopes that nobody else has. */
  retire(): string[];
  /** Called after retire(): no worker has it any more. */
  free(): void;
}

let lastId = 0;

/** One that no listener and no filter chain has had. */
export function newId(): number {
  return ++lastId;
}
