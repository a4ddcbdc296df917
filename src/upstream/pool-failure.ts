// Why no connection to a host can be had.

import { errorName } from '../common/errors/errno.js';

export const enum PoolFailure {
  /** The circuit breaker for requests is open. */
  Overflow = 1,
  /** The host, or the network on the way to it, has answered the connect with an error. */
  ConnectFailed = 2,
  ConnectTimeout = 3,
  /** That for pending requests is open: the host has not been asked for anything. */
  PendingOverflow = 4,
  /** The connect could not begin: there is no way to the host's address. */
  ConnectFailedAtOnce = 5,
}

/** What the transport has to say of a connect that has failed so, in Envoy's words; '' for a timeout. */
export function connectFailureText(failure: PoolFailure, errno: number): string {
  if (failure === PoolFailure.ConnectTimeout) return '';
  const kind = failure === PoolFailure.ConnectFailedAtOnce ? 'immediate' : 'delayed';
  return `${kind} connect error: ${errorName(errno)}`;
}
