// Why a pool cannot provide a connection.

import { errorName } from '../common/errors/errno.js';
import { addressText, decodeSockaddr } from '../io/addresses/address.js';
import { ConnectStep } from '../io/shim.js';
import type { ClusterSpec } from './cluster-config.js';

export const enum PoolFailure {
  /** The circuit breaker for requests is open. */
  Overflow = 1,
  /** The connect failed, or could not begin. */
  ConnectFailed = 2,
  ConnectTimeout = 3,
  /** The circuit breaker for pending requests is open: nothing was sent to the host. */
  PendingOverflow = 4,
  /** The cluster's source address could not be bound. */
  BindFailed = 5,
}

/** Returns the text of a failed connect, in Envoy's wording. */
export function connectFailureText({ sourceAddress: source }: ClusterSpec, errno: number, step: ConnectStep): string {
  const error = errorName(errno);
  if (step === ConnectStep.Bind && source !== undefined) {
    return `failed to bind to ${addressText(decodeSockaddr(source, 0, source.length))}: ${error}`;
  }
  return `${step === ConnectStep.Later ? 'delayed' : 'immediate'} connect error: ${error}`;
}
