// Host functions for data and queues that VMs share.

import { Result } from '../abi.js';
import type { Vm } from '../contexts/context.js';
import { type HostTable, host } from './host-function.js';

export const SHARED_FUNCTIONS: HostTable = {
  proxy_get_shared_data: host('iiiii>i', getData),
  proxy_set_shared_data: host('iiiii>i', setData),
  proxy_register_shared_queue: host('iii>i', registerQueue),
  proxy_resolve_shared_queue: host('iiiii>i', resolveQueue),
  proxy_enqueue_shared_queue: host('iii>i', enqueue),
  proxy_dequeue_shared_queue: host('iii>i', dequeue),
};

function getData(vm: Vm, key: number, keySize: number, pointerAt: number, sizeAt: number, casAt: number): Result {
  const text = vm.memory.text(key, keySize);
  if (text === undefined) return Result.InvalidMemoryAccess;
  const found = vm.services.shared.get(vm.settings.vmId, text);
  if (typeof found === 'number') return found;
  const isWritten = vm.memory.give(found.value, pointerAt, sizeAt) && vm.memory.setU32(casAt, found.cas);
  return isWritten ? Result.Ok : Result.InvalidMemoryAccess;
}

function setData(vm: Vm, key: number, keySize: number, value: number, valueSize: number, cas: number): Result {
  const text = vm.memory.text(key, keySize);
  const bytes = vm.memory.bytes(value, valueSize);
  if (text === undefined || bytes === undefined) return Result.InvalidMemoryAccess;
  return vm.services.shared.set(vm.settings.vmId, text, bytes, cas >>> 0);
}

function registerQueue(vm: Vm, name: number, nameSize: number, tokenAt: number): Result {
  const text = vm.memory.text(name, nameSize);
  if (text === undefined) return Result.InvalidMemoryAccess;
  const { root } = vm.context;
  const token = vm.services.shared.registerQueue(vm.settings.vmId, text, vm, (ready) => {
    vm.call(root, 'proxy_on_queue_ready', root.id, ready);
  });
  if (token === undefined) return Result.InternalFailure;
  return vm.memory.setU32(tokenAt, token) ? Result.Ok : Result.InvalidMemoryAccess;
}

function resolveQueue(vm: Vm, id: number, idSize: number, name: number, nameSize: number, tokenAt: number): Result {
  const vmId = vm.memory.text(id, idSize);
  const text = vm.memory.text(name, nameSize);
  if (vmId === undefined || text === undefined) return Result.InvalidMemoryAccess;
  const token = vm.services.shared.resolveQueue(vmId === '' ? vm.settings.vmId : vmId, text);
  if (token === undefined) return Result.NotFound;
  return vm.memory.setU32(tokenAt, token) ? Result.Ok : Result.InvalidMemoryAccess;
}

function enqueue(vm: Vm, token: number, data: number, size: number): Result {
  const bytes = vm.memory.bytes(data, size);
  return bytes === undefined ? Result.InvalidMemoryAccess : vm.services.shared.enqueue(token >>> 0, bytes);
}

function dequeue(vm: Vm, token: number, pointerAt: number, sizeAt: number): Result {
  const item = vm.services.shared.dequeue(token >>> 0);
  if (typeof item === 'number') return item;
  return vm.memory.give(item, pointerAt, sizeAt) ? Result.Ok : Result.InvalidMemoryAccess;
}
