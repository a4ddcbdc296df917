// Host functions for logs, time, properties, and the course of a stream.

import { Result, StreamType } from '../abi.js';
import { Context, type Vm } from '../contexts/context.js';
import { readPairs } from '../vm/pairs.js';
import { callForeignFunction } from './foreign-functions.js';
import { type HostTable, host } from './host-function.js';

/** Of a property's path; there is none that is longer. */
const MAX_PATH_BYTES = 64 * 1024;

export const CONTEXT_FUNCTIONS: HostTable = {
  proxy_log: host('iii>i', log),
  proxy_get_log_level: host('i>i', (vm, at: number) => written(vm.memory.setU32(at, Context.logLevel())), ['0.2.1']),
  proxy_get_status: host('iii>i', getStatus),
  proxy_get_property: host('iiii>i', getProperty),
  proxy_set_property: host('iiii>i', setProperty),
  proxy_get_current_time_nanoseconds: host('i>i', (vm, at: number) => written(vm.memory.setU64(at, nowNs(vm)))),
  proxy_set_tick_period_milliseconds: host('i>i', setTickPeriod),
  proxy_set_effective_context: host('i>i', (vm, id: number) =>
    vm.setEffectiveContext(id >>> 0) ? Result.Ok : Result.BadArgument,
  ),
  proxy_done: host('>i', (vm) => vm.context.done()),
  proxy_continue_stream: host('i>i', (vm, type: number) => onStream(type, () => vm.context.continueStream(type)), [
    '0.2.0',
    '0.2.1',
  ]),
  proxy_close_stream: host('i>i', (vm, type: number) => onStream(type, () => vm.context.closeStream(type)), [
    '0.2.0',
    '0.2.1',
  ]),
  proxy_continue_request: host('>i', (vm) => vm.context.continueStream(StreamType.Request), ['0.1.0']),
  proxy_continue_response: host('>i', (vm) => vm.context.continueStream(StreamType.Response), ['0.1.0']),
  proxy_clear_route_cache: host('>i', clearRouteCache, ['0.1.0']),
  proxy_send_local_response: host('iiiiiiii>i', sendLocalResponse),
  proxy_call_foreign_function: host('iiiiii>i', callForeignFunction),
  pthread_equal: host('ii>i', (_vm, left: number, right: number) => (left === right ? 1 : 0)),
  emscripten_notify_memory_growth: host('i>', () => undefined),
};

/** Milliseconds since 1970 as nanoseconds. */
export function nowNs(vm: Vm): bigint {
  return BigInt(Math.round(vm.services.realtimeMs() * 1000)) * 1000n;
}

function log(vm: Vm, level: number, pointer: number, size: number): Result {
  const text = vm.memory.text(pointer, size);
  return text === undefined ? Result.InvalidMemoryAccess : vm.context.log(level, text);
}

function getStatus(vm: Vm, codeAt: number, pointerAt: number, sizeAt: number): Result {
  const { code, message } = vm.context.root.status;
  return written(vm.memory.setU32(codeAt, code) && vm.memory.giveText(message, pointerAt, sizeAt));
}

function getProperty(vm: Vm, path: number, size: number, pointerAt: number, sizeAt: number): Result {
  const bytes = vm.memory.bytes(path, size);
  if (bytes === undefined) return Result.InvalidMemoryAccess;
  if (bytes.length > MAX_PATH_BYTES) return Result.NotFound;
  const parts = bytes.toString('utf8').split('\0');
  if (parts.at(-1) === '') parts.pop();
  const value = vm.context.property(parts);
  return typeof value === 'number' ? value : written(vm.memory.give(value, pointerAt, sizeAt));
}

function setProperty(vm: Vm, key: number, keySize: number, value: number, valueSize: number): Result {
  const path = vm.memory.bytes(key, keySize);
  const bytes = vm.memory.bytes(value, valueSize);
  if (path === undefined || bytes === undefined) return Result.InvalidMemoryAccess;
  return vm.context.setProperty(path.toString('utf8'), Buffer.from(bytes));
}

function setTickPeriod(vm: Vm, ms: number): Result {
  vm.context.root.setTickPeriod(ms >>> 0);
  return Result.Ok;
}

function onStream(type: number, act: () => Result): Result {
  return type >= 0 && type <= StreamType.Upstream ? act() : Result.BadArgument;
}

function clearRouteCache(vm: Vm): Result {
  vm.context.clearRouteCache();
  return Result.Ok;
}

function sendLocalResponse(
  vm: Vm,
  status: number,
  details: number,
  detailsSize: number,
  body: number,
  bodySize: number,
  headers: number,
  headersSize: number,
  grpcStatus: number,
): Result {
  const { memory } = vm;
  const detailsText = memory.text(details, detailsSize);
  const bodyBytes = memory.bytes(body, bodySize);
  const headerBytes = memory.bytes(headers, headersSize);
  if (detailsText === undefined || bodyBytes === undefined || headerBytes === undefined)
    return Result.InvalidMemoryAccess;
  return vm.context.sendLocalResponse({
    status,
    details: detailsText,
    body: Buffer.from(bodyBytes),
    headers: readPairs(headerBytes).map(([name, value]) => [name.toLowerCase(), value]),
    grpcStatus,
  });
}

function written(isWritten: boolean): Result {
  return isWritten ? Result.Ok : Result.InvalidMemoryAccess;
}
