// Why no connection to a host can be had.

import { errorName } from '../common/errors/errno.js';
import { addressText, decodeSockaddr } from '../io/addresses/address.js';
import { ConnectStep } from '../io/shim.js';
import type { ClusterSpec } from './cluster-config.js';

export const enum PoolFailure {
  /** The circuit breaker for requests is open. */
  Overflow = 1,
  /** The connect failed, on the way or before it began. */
  ConnectFailed = 2,
  ConnectTimeout = 3,
  /** That for pending requests is open: the host has not been asked for anything. */
  PendingOverflow = 4,
  /** There is no connecting from the cluster's source address. */
  BindFailed = 5,
}

/** What the transport has to say of a connect of this cluster that failed, in Envoy's words. */
export function connectFailureText({ sourceAddress: source }: ClusterSpec, errno: number, step: ConnectStep): string {
  const error = errorName(errno);
  if (step === ConnectStep.Bind && source !== undefined) {
    return `failed to bind to ${addressText(decodeSockaddr(source, 0, source.length))}: ${error}`;
  }
  return `${step === ConnectStep.Later ? 'delayed' : 'immediate'} connect error: ${error}`;
}
