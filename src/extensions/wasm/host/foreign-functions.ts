// Foreign functions: those of Envoy's that need no more than the stream.

import { Result } from '../abi.js';
import type { Vm } from '../contexts/context.js';

/** Returns NotFound for a function that Baton does not have. */
export function callForeignFunction(
  vm: Vm,
  name: number,
  nameSize: number,
  data: number,
  dataSize: number,
  resultAt: number,
  resultSizeAt: number,
): Result {
  const { memory } = vm;
  const text = memory.text(name, nameSize);
  if (text === undefined || memory.bytes(data, dataSize) === undefined) return Result.InvalidMemoryAccess;
  if (text !== 'clear_route_cache') return Result.NotFound;
  vm.context.clearRouteCache();
  // There is no result.
  const isWritten = (at: number) => at === 0 || memory.setU32(at, 0);
  return isWritten(resultAt) && isWritten(resultSizeAt) ? Result.Ok : Result.InvalidMemoryAccess;
}
