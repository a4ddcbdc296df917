// Numbers by which the primary and the workers speak of versions of listeners and of filter chains.

let lastId = 0;

/** One that no listener and no filter chain has had. */
export function newId(): number {
  return ++lastId;
}
