// The configuration of request IDs (UuidRequestIdConfig), and the trace reason of IDs from outside.

import { headerKey } from '../../../common/text/header-names.js';
import type { HttpConnectionManager, UuidRequestIdConfig } from '../../../config/generated/api.js';
import type { HeaderBlock } from '../header-block.js';
import { REQUEST_ID_BYTES } from './request-id.js';

/** How request IDs take part in tracing. */
export interface RequestIdRules {
  /** The version digit of an ID carries the reason for its trace. */
  readonly packsReason: boolean;
  /** The ID of a request decides whether it is sampled. */
  readonly decidesSampling: boolean;
}

export function requestIdRules(config: HttpConnectionManager['request_id_extension']): RequestIdRules {
  const { pack_trace_reason: packsReason = true, use_request_id_for_trace_sampling: decidesSampling = true } =
    (config?.typed_config ?? {}) as UuidRequestIdConfig;
  return { packsReason, decidesSampling };
}

/** Returns the offset of the request ID in the memory of `headers`; -1 if there is none, or one with fewer than `minBytes`. */
export function findRequestId(headers: HeaderBlock, minBytes: number): number {
  const index = headers.findValue(REQUEST_ID);
  if (index < 0) return -1;
  const start = headers.valueStart(index);
  return headers.valueEnd(index) - start >= minBytes ? start : -1;
}

/** Returns the offset of a request ID that can carry a reason; -1 unless it has the length of a UUID. */
export function findReasonedId(headers: HeaderBlock): number {
  return findRequestId(headers, REQUEST_ID_BYTES + 1) < 0 ? findRequestId(headers, REQUEST_ID_BYTES) : -1;
}

/** Clients outside cannot have their requests traced by the ID that they send. */
export function clearTraceReason(headers: HeaderBlock): void {
  const at = findReasonedId(headers);
  if (at >= 0) headers.memory.bytes[at + REASON_AT] = NOT_TRACED;
}

/** Position of the digit with the reason. */
export const REASON_AT = 14;
export const NOT_TRACED = 0x34;

const REQUEST_ID = headerKey('x-request-id');
