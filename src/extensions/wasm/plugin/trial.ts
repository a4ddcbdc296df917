// Tries a plugin before it is used: its module is instantiated and configured as on a worker, with services without effect.

import { performance } from 'node:perf_hooks';
import { ThreadState } from '../shared/thread-state.js';
import type { VmServices, WasmCall } from '../vm/services.js';
import { LocalVms } from './local-vms.js';
import type { Plugin } from './plugin.js';

/** Throws an Error with Envoy's text if the module does not load, or refuses its configuration. */
export function tryPlugin(plugin: Plugin): void {
  const vms = new LocalVms(services(), { created() {}, removed() {} });
  vms.release(plugin, vms.acquire(plugin));
}

function services(): VmServices {
  const stat = { add() {}, set() {}, record() {} };
  return {
    realtimeMs: () => performance.timeOrigin + performance.now(),
    timers: { reschedule() {}, cancel() {} },
    node: {},
    calls: { start: (): WasmCall => ({ cancel() {} }) },
    metrics: { counter: () => stat, gauge: () => stat, histogram: () => stat },
    shared: new ThreadState(),
  };
}
