// The HTTP status that a gRPC status becomes (google/rpc/code.proto).

const STATUSES = [200, 499, 500, 400, 504, 404, 409, 403, 429, 400, 409, 400, 501, 500, 503, 500, 401];
const UNKNOWN = 500;

export function httpStatusOf(grpcStatus: number): number {
  return STATUSES[grpcStatus] ?? UNKNOWN;
}
