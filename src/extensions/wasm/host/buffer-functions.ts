// Host functions for bodies, data of connections and configurations.

import { BufferType, Result } from '../abi.js';
import type { Vm } from '../contexts/context.js';
import { type HostTable, host } from './host-function.js';

export const BUFFER_FUNCTIONS: HostTable = {
  proxy_get_buffer_bytes: host('iiiii>i', getBytes),
  proxy_get_buffer_status: host('iii>i', getStatus),
  proxy_set_buffer_bytes: host('iiiii>i', setBytes),
  proxy_get_configuration: host('ii>i', getConfiguration, ['0.1.0']),
};

function getBytes(vm: Vm, type: number, start: number, length: number, pointerAt: number, sizeAt: number): Result {
  if (!isBufferType(type)) return Result.BadArgument;
  const buffer = vm.context.buffer(type);
  if (buffer === undefined) return Result.NotFound;
  const from = start >>> 0;
  if (from + (length >>> 0) > 0xffffffff) return Result.BadArgument;
  const available = Math.min(length >>> 0, buffer.length - from);
  if (available <= 0) return Result.Ok;
  return vm.memory.give(buffer.slice(from, available), pointerAt, sizeAt) ? Result.Ok : Result.InvalidMemoryAccess;
}

function getStatus(vm: Vm, type: number, lengthAt: number, flagsAt: number): Result {
  if (!isBufferType(type)) return Result.BadArgument;
  const buffer = vm.context.buffer(type);
  if (buffer === undefined) return Result.NotFound;
  const isWritten = vm.memory.setU32(lengthAt, buffer.length) && vm.memory.setU32(flagsAt, 0);
  return isWritten ? Result.Ok : Result.InvalidMemoryAccess;
}

function setBytes(vm: Vm, type: number, start: number, length: number, data: number, dataSize: number): Result {
  if (!isBufferType(type)) return Result.BadArgument;
  const buffer = vm.context.buffer(type);
  if (buffer === undefined) return Result.NotFound;
  const bytes = vm.memory.bytes(data, dataSize);
  if (bytes === undefined) return Result.InvalidMemoryAccess;
  return buffer.replace(start >>> 0, length >>> 0, bytes);
}

function getConfiguration(vm: Vm, pointerAt: number, sizeAt: number): Result {
  const bytes = vm.context.root.configuration ?? vm.settings.configuration;
  return vm.memory.give(bytes, pointerAt, sizeAt) ? Result.Ok : Result.InvalidMemoryAccess;
}

function isBufferType(type: number): type is BufferType {
  return type >= 0 && type <= BufferType.CallData;
}
