// Request headers that control faults and name the downstream cluster and node.

import { type HeaderBlock, type HeaderKey, headerKey } from '../../../sdk.js';

export const ABORT = headerKey('x-envoy-fault-abort-request');
export const ABORT_GRPC = headerKey('x-envoy-fault-abort-grpc-request');
export const ABORT_PERCENTAGE = headerKey('x-envoy-fault-abort-request-percentage');
export const DELAY = headerKey('x-envoy-fault-delay-request');
export const DELAY_PERCENTAGE = headerKey('x-envoy-fault-delay-request-percentage');
export const SERVICE_CLUSTER = headerKey('x-envoy-downstream-service-cluster');
export const SERVICE_NODE = headerKey('x-envoy-downstream-service-node');

/** Returns the non-negative integer in the first field of that name; undefined if it is absent or not an integer. */
export function numberIn(headers: HeaderBlock, key: HeaderKey): number | undefined {
  const text = headers.get(key);
  return text !== undefined && /^\d{1,15}$/.test(text) ? Number(text) : undefined;
}
