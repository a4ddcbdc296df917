// The grpc-status of a head, and the one that an HTTP status implies.

import type { HeaderKey } from './text/header-names.js';

/** The part of a head that is read. */
export interface StatusHead {
  readonly memory: { readonly bytes: Uint8Array };
  findValue(key: HeaderKey): number;
  valueStart(index: number): number;
  valueEnd(index: number): number;
}

/** A received value that is not a valid grpc-status. */
const INVALID = -1;
/** Longer values are invalid anyway. */
const MAX_DIGITS = 9;
const UNKNOWN = 2;

/** Returns the status in the field `key`, which may be one that gRPC does not define; -1 if it is not a number, undefined if there is none. */
export function grpcStatusIn(head: StatusHead, key: HeaderKey): number | undefined {
  const index = head.findValue(key);
  if (index < 0) return undefined;
  const start = head.valueStart(index);
  const end = head.valueEnd(index);
  if (start === end) return undefined;
  if (end - start > MAX_DIGITS) return INVALID;
  const { bytes } = head.memory;
  let number = 0;
  for (let at = start; at < end; at++) {
    const digit = bytes[at]! - 48;
    if (digit < 0 || digit > 9) return INVALID;
    number = number * 10 + digit;
  }
  return number;
}

/** Returns the status of a call whose response has none. `responseCode`: 0 without a response. */
export function impliedGrpcStatus(responseCode: number): number {
  return responseCode === 0 ? UNKNOWN : grpcStatusOf(responseCode);
}

/** Returns the grpc-status for an HTTP status (gRPC's http-grpc-status-mapping.md). */
export function grpcStatusOf(status: number): number {
  switch (status) {
    case 400:
      return 13;
    case 401:
      return 16;
    case 403:
      return 7;
    case 404:
      return 12;
    case 429:
    case 502:
    case 503:
    case 504:
      return 14;
    default:
      return UNKNOWN;
  }
}
