// The VMs of a worker, and what they use of it.

import { performance } from 'node:perf_hooks';
import type { WorkerContext } from '../sdk.js';
import { ClusterCalls } from './cluster-calls.js';
import { LocalVms } from './plugin/local-vms.js';
import type { Plugin } from './plugin/plugin.js';
import { PluginUse } from './plugin/plugin-use.js';
import { ThreadState } from './shared/thread-state.js';
import { CUSTOM_PREFIX, PluginStats, pluginPrefix, reloadStats, vmCounts } from './stats.js';
import type { Metrics, VmServices } from './vm/services.js';

/** Of all modules that a worker has run: stats need memory that is not freed while the process lives. */
const MAX_STATS = 10_000;

/** By the stats of their thread. */
const workers = new WeakMap<object, LocalVms>();

/** Loads the plugin on this worker. A plugin that fails is logged; its streams end as its policy demands. */
export function usePlugin(plugin: Plugin, context: WorkerContext): PluginUse {
  let vms = workers.get(context.stats);
  if (vms === undefined) {
    vms = new LocalVms(
      servicesOf(context),
      vmCounts((prefix, layout) => context.scope(prefix, layout)),
    );
    workers.set(context.stats, vms);
  }
  const stats = reloadStats(context.scope(pluginPrefix(plugin.name), PluginStats));
  return new PluginUse(plugin, vms, stats, context.clock.monotonicMs, Math.random);
}

function servicesOf(context: WorkerContext): VmServices {
  const { clusters, timers } = context;
  return {
    realtimeMs: () => performance.timeOrigin + performance.now(),
    timers,
    calls: new ClusterCalls(context.calls, clusters),
    metrics: metricsOf(context),
    shared: new ThreadState(),
  };
}

function metricsOf({ stats }: WorkerContext): Metrics {
  const names = new Set<string>();
  const counted = (name: string) => {
    if (names.size >= MAX_STATS && !names.has(name)) throw new RangeError(`modules have defined ${MAX_STATS} stats`);
    names.add(name);
    return name;
  };
  return {
    counter: (name) => stats.dynamicCounter(CUSTOM_PREFIX, counted(name)),
    gauge: (name) => stats.dynamicGauge(CUSTOM_PREFIX, counted(name)),
    histogram: (name) => stats.dynamicHistogram(CUSTOM_PREFIX, counted(name)),
  };
}
