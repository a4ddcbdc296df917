// Host functions for the fields of messages.

import { MapType, Result } from '../abi.js';
import type { Vm } from '../contexts/context.js';
import { byteSize } from '../contexts/header-map.js';
import { readPairs, writePairs } from '../vm/pairs.js';
import { type HostTable, host } from './host-function.js';

export const HEADER_FUNCTIONS: HostTable = {
  proxy_add_header_map_value: host(
    'iiiii>i',
    (vm, type: number, key: number, keySize: number, value: number, size: number) =>
      change(vm, type, key, keySize, value, size, 'add'),
  ),
  proxy_replace_header_map_value: host(
    'iiiii>i',
    (vm, type: number, key: number, keySize: number, value: number, size: number) =>
      change(vm, type, key, keySize, value, size, 'replace'),
  ),
  proxy_get_header_map_value: host('iiiii>i', getValue),
  proxy_remove_header_map_value: host('iii>i', removeValue),
  proxy_get_header_map_pairs: host('iii>i', getPairs),
  proxy_set_header_map_pairs: host('iii>i', setPairs),
  proxy_get_header_map_size: host('ii>i', getSize),
};

function change(
  vm: Vm,
  type: number,
  key: number,
  keySize: number,
  value: number,
  valueSize: number,
  how: 'add' | 'replace',
): Result {
  if (!isMapType(type)) return Result.BadArgument;
  const name = vm.memory.text(key, keySize);
  const text = vm.memory.text(value, valueSize);
  if (name === undefined || text === undefined) return Result.InvalidMemoryAccess;
  return vm.context.mutableMap(type)?.[how](name.toLowerCase(), text) ?? Result.BadArgument;
}

function getValue(vm: Vm, type: number, key: number, keySize: number, pointerAt: number, sizeAt: number): Result {
  if (!isMapType(type)) return Result.BadArgument;
  const name = vm.memory.text(key, keySize);
  if (name === undefined) return Result.InvalidMemoryAccess;
  const map = vm.context.readableMap(type);
  if (map === undefined) return Result.BadArgument;
  let value = map.get(name.toLowerCase());
  if (value === undefined && vm.settings.module.abi === '0.1.0') value = '';
  if (value === undefined) return Result.NotFound;
  return vm.memory.giveText(value, pointerAt, sizeAt) ? Result.Ok : Result.InvalidMemoryAccess;
}

function removeValue(vm: Vm, type: number, key: number, keySize: number): Result {
  if (!isMapType(type)) return Result.BadArgument;
  const name = vm.memory.text(key, keySize);
  if (name === undefined) return Result.InvalidMemoryAccess;
  return vm.context.mutableMap(type)?.remove(name.toLowerCase()) ?? Result.BadArgument;
}

function getPairs(vm: Vm, type: number, pointerAt: number, sizeAt: number): Result {
  if (!isMapType(type)) return Result.BadArgument;
  const pairs = vm.context.readableMap(type)?.pairs() ?? [];
  const bytes = pairs.length === 0 ? Buffer.alloc(0) : writePairs(pairs);
  return vm.memory.give(bytes, pointerAt, sizeAt) ? Result.Ok : Result.InvalidMemoryAccess;
}

function setPairs(vm: Vm, type: number, pointer: number, size: number): Result {
  if (!isMapType(type)) return Result.BadArgument;
  const bytes = vm.memory.bytes(pointer, size);
  if (bytes === undefined) return Result.InvalidMemoryAccess;
  const pairs = readPairs(bytes).map(([name, value]) => [name.toLowerCase(), value] as const);
  return vm.context.mutableMap(type)?.setPairs(pairs) ?? Result.BadArgument;
}

function getSize(vm: Vm, type: number, sizeAt: number): Result {
  if (!isMapType(type)) return Result.BadArgument;
  const map = vm.context.readableMap(type);
  if (map === undefined) return Result.BadArgument;
  return vm.memory.setU32(sizeAt, byteSize(map)) ? Result.Ok : Result.InvalidMemoryAccess;
}

function isMapType(type: number): type is MapType {
  return type >= 0 && type <= MapType.HttpCallResponseTrailers;
}
