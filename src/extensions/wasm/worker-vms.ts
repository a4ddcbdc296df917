// The VMs of a worker, and what they use of it.

import { performance } from 'node:perf_hooks';
import type { WorkerContext } from '../sdk.js';
import { ClusterCalls } from './cluster-calls.js';
import { LocalVms } from './plugin/local-vms.js';
import type { Plugin } from './plugin/plugin.js';
import { PluginUse } from './plugin/plugin-use.js';
import { ThreadState } from './shared/thread-state.js';
import { CUSTOM_PREFIX, PluginStats, pluginPrefix, reloadStats, vmCounts } from './stats.js';
import type { VmServices } from './vm/services.js';

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
  const { clusters, node, stats, timers } = context;
  return {
    realtimeMs: () => performance.timeOrigin + performance.now(),
    timers,
    node,
    calls: new ClusterCalls(context.calls, clusters),
    metrics: {
      counter: (name) => stats.dynamicCounter(CUSTOM_PREFIX, name),
      gauge: (name) => stats.dynamicGauge(CUSTOM_PREFIX, name),
      histogram: (name) => stats.dynamicHistogram(CUSTOM_PREFIX, name),
    },
    shared: new ThreadState(),
  };
}
