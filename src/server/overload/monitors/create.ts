// Creates the resource monitors of a bootstrap that are queried at an interval.

import type { ResourceMonitor as MonitorConfig } from '../../../config/generated/api.js';
import { unpack } from '../../../config/schema/any.js';
import { monotonicMs } from '../../../io/time/timer-driver.js';
import type { Runtime } from '../../../runtime/runtime.js';
import { CgroupMemory } from './cgroup-memory.js';
import { CpuUtilization, containerTimes, hostTimes } from './cpu-utilization.js';
import { FixedHeap } from './fixed-heap.js';
import { InjectedResource } from './injected-resource.js';
import type { ResourceMonitor } from './monitor.js';

/** Undefined: the monitor is not queried at an interval. Throws an Error when the resource cannot be measured here. */
export function createMonitor({ typed_config: config }: MonitorConfig, runtime: Runtime): ResourceMonitor | undefined {
  const heap = unpack(config, 'envoy.extensions.resource_monitors.fixed_heap.v3.FixedHeapConfig');
  if (heap !== undefined) {
    const { default_value: fallback = heap.max_heap_size_bytes, runtime_key: key } =
      heap.max_heap_size_bytes_runtime ?? {};
    const bytes = runtime.integer(key, Number(fallback ?? 0));
    return new FixedHeap(() => bytes.value);
  }
  const cgroup = unpack(config, 'envoy.extensions.resource_monitors.cgroup_memory.v3.CgroupMemoryConfig');
  if (cgroup !== undefined) return new CgroupMemory(Number(cgroup.max_memory_bytes ?? 0));
  const cpu = unpack(config, 'envoy.extensions.resource_monitors.cpu_utilization.v3.CpuUtilizationConfig');
  if (cpu !== undefined) return new CpuUtilization(cpu.mode === 'CONTAINER' ? containerTimes(monotonicMs) : hostTimes);
  const injected = unpack(config, 'envoy.extensions.resource_monitors.injected_resource.v3.InjectedResourceConfig');
  return injected && new InjectedResource(injected.filename!);
}
