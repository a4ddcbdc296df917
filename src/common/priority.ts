// How important a request is: routes say it, and clusters have circuit breakers for each.

/** Routing priority; each has limits of its own. */
export const enum Priority {
  Default = 0,
  High = 1,
}
