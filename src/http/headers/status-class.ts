// Classes of statuses (RFC 9110 section 15). They end at 599: 600 to 999 pass through, as in Envoy, and belong to none.

/** Returns whether a status is 5xx. */
export function isServerError(status: number): boolean {
  return status >= 500 && status <= 599;
}
