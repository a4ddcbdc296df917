// The priority of a request: routes set it, and clusters have circuit breakers for each.

/** Routing priority; each has its own limits. */
export const enum Priority {
  Default = 0,
  High = 1,
}
