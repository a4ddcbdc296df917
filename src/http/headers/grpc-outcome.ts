// The outcome of a gRPC response as an HTTP status: the response's own status is 200 even when the call failed.

import { headerKey } from '../../common/text/header-names.js';
import { isGrpcRequest } from './grpc-reply.js';
import type { HeaderBlock } from './header-block.js';

const GRPC_STATUS = headerKey('grpc-status');

/** HTTP statuses indexed by grpc-status, as in google/rpc/code.proto. */
const STATUSES = [200, 499, 500, 400, 504, 404, 409, 403, 429, 400, 409, 400, 501, 500, 503, 500, 401];
/** For an unknown grpc-status. */
const UNKNOWN = 500;

/**
 * Returns the status that counts as a response's outcome: its HTTP status, or the equivalent of a grpc-status in the head of a gRPC
 * response.
 */
export function outcomeStatus(headers: HeaderBlock): number {
  const status = callStatus(headers);
  return status === 0 || !isGrpcRequest(headers) ? headers.status : status;
}

/** Returns the HTTP status equivalent to the grpc-status in a head or in trailers; 0: there is none. */
export function callStatus(headers: HeaderBlock): number {
  const value = headers.mayHave(GRPC_STATUS.id) ? headers.get(GRPC_STATUS) : undefined;
  if (value === undefined) return 0;
  return value === '' ? UNKNOWN : (STATUSES[Number(value)] ?? UNKNOWN);
}
