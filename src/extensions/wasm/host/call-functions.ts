// Host functions for calls to hosts of clusters.

import { Result } from '../abi.js';
import type { Vm } from '../contexts/context.js';
import { readPairs } from '../vm/pairs.js';
import { type HostTable, host } from './host-function.js';

export const CALL_FUNCTIONS: HostTable = {
  proxy_http_call: host('iiiiiiiiii>i', httpCall),
  // Calls by gRPC cannot be made: modules get InternalFailure, as for a service that is not reachable.
  proxy_grpc_call: host('iiiiiiiiiiii>i', () => Result.InternalFailure),
  proxy_grpc_stream: host('iiiiiiiii>i', () => Result.InternalFailure),
  proxy_grpc_send: host('iiii>i', () => Result.NotFound),
  proxy_grpc_close: host('i>i', () => Result.NotFound),
  proxy_grpc_cancel: host('i>i', () => Result.NotFound),
};

function httpCall(
  vm: Vm,
  cluster: number,
  clusterSize: number,
  headers: number,
  headersSize: number,
  body: number,
  bodySize: number,
  trailers: number,
  trailersSize: number,
  timeoutMs: number,
  tokenAt: number,
): Result {
  const { memory } = vm;
  const name = memory.bytes(cluster, clusterSize);
  const bodyBytes = memory.bytes(body, bodySize);
  const headerBytes = memory.bytes(headers, headersSize);
  const trailerBytes = memory.bytes(trailers, trailersSize);
  if (name === undefined || bodyBytes === undefined || headerBytes === undefined || trailerBytes === undefined)
    return Result.InvalidMemoryAccess;
  if (!memory.setU32(tokenAt, 0)) return Result.InvalidMemoryAccess;
  if (timeoutMs < 0) return Result.BadArgument;
  const started = vm.context.root.calls.start({
    cluster: name.toString('utf8'),
    headers: readPairs(headerBytes).map(([key, value]) => [key.toLowerCase(), value]),
    body: Buffer.from(bodyBytes),
    trailers: readPairs(trailerBytes),
    timeoutMs,
  });
  if (typeof started === 'number') return started;
  memory.setU32(tokenAt, started.token);
  return Result.Ok;
}
