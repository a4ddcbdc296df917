// Host functions for stats of modules: wasmcustom.<name>.

import { MetricType, Result } from '../abi.js';
import type { Vm } from '../contexts/context.js';
import { VmMetrics } from '../vm/vm-metrics.js';
import { type HostTable, host } from './host-function.js';

export const METRIC_FUNCTIONS: HostTable = {
  proxy_define_metric: host('iiii>i', define),
  proxy_increment_metric: host('il>i', (vm, id: number, offset: bigint) => metricsOf(vm).increment(id, offset)),
  proxy_record_metric: host('il>i', (vm, id: number, value: bigint) =>
    metricsOf(vm).record(id, BigInt.asUintN(64, value)),
  ),
  proxy_get_metric: host('ii>i', get),
};

const metrics = new WeakMap<Vm, VmMetrics>();

function metricsOf(vm: Vm): VmMetrics {
  let found = metrics.get(vm);
  if (found === undefined) metrics.set(vm, (found = new VmMetrics(vm.services.metrics)));
  return found;
}

function define(vm: Vm, type: number, name: number, nameSize: number, idAt: number): Result {
  const text = vm.memory.bytes(name, nameSize)?.toString('utf8');
  if (text === undefined) return Result.InvalidMemoryAccess;
  if (type < 0 || type > MetricType.Histogram) return Result.BadArgument;
  const id = metricsOf(vm).define(type as MetricType, text);
  if (id === undefined) return Result.InternalFailure;
  return vm.memory.setU32(idAt, id) ? Result.Ok : Result.InvalidMemoryAccess;
}

function get(vm: Vm, id: number, valueAt: number): Result {
  const value = metricsOf(vm).value(id);
  if (typeof value === 'number') return value;
  return vm.memory.setU64(valueAt, value) ? Result.Ok : Result.InvalidMemoryAccess;
}
