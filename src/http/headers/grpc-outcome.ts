// What a response of a gRPC service says in terms of HTTP, where its status is 200 also when the call has failed.

import { headerKey } from '../../common/text/header-names.js';
import { isGrpcRequest } from './grpc-reply.js';
import type { HeaderBlock } from './header-block.js';

const GRPC_STATUS = headerKey('grpc-status');

/** By grpc-status, as in google/rpc/code.proto. */
const STATUSES = [200, 499, 500, 400, 504, 404, 409, 403, 429, 400, 409, 400, 501, 500, 503, 500, 401];
/** Of a grpc-status that does not exist. */
const UNKNOWN = 500;

/** The status by which a response is judged: that of HTTP, or what a grpc-status means that stands in the head of a gRPC response. */
export function outcomeStatus(headers: HeaderBlock): number {
  const value = headers.mayHave(GRPC_STATUS.id) ? headers.get(GRPC_STATUS) : undefined;
  if (value === undefined || !isGrpcRequest(headers)) return headers.status;
  return value === '' ? UNKNOWN : (STATUSES[Number(value)] ?? UNKNOWN);
}
