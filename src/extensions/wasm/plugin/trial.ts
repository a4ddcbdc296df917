// Tries a plugin before it is used: its module is instantiated and configured as on a worker, with services without effect.

import { performance } from 'node:perf_hooks';
import { createContext, runInContext } from 'node:vm';
import { hostFunction } from '../host/index.js';
import { ThreadState } from '../shared/thread-state.js';
import type { VmServices, WasmCall } from '../vm/services.js';
import { LocalVms, type VmFunctions } from './local-vms.js';
import type { Plugin } from './plugin.js';

/** A module that needs longer is refused. */
const MAX_MS = 5000;
/** Calls to the host are refused after the limit. Only what calls none for so long is interrupted: never the host itself. */
const GRACE_MS = 500;

/** Throws an Error, with Envoy's text if the module does not load or refuses its configuration. Blocks the thread for a limited time. */
export function tryPlugin(plugin: Plugin, maxMs = MAX_MS): void {
  const endMs = performance.now() + maxMs;
  const vms = new LocalVms(trialServices(), { created() {}, removed() {} }, functionsUntil(endMs));
  try {
    interruptAfter(maxMs + GRACE_MS, () => vms.release(plugin, vms.acquire(plugin)));
  } catch (error) {
    if (performance.now() < endMs) throw error;
    throw new Error(`its module has not started and taken its configuration within ${maxMs / 1000} s`);
  }
}

/** Services without effect. */
export function trialServices(): VmServices {
  const stat = { add() {}, set() {}, record() {} };
  return {
    realtimeMs: () => performance.timeOrigin + performance.now(),
    timers: { reschedule() {}, cancel() {} },
    calls: { start: (): WasmCall => ({ cancel() {} }) },
    metrics: { counter: () => stat, gauge: () => stat, histogram: () => stat },
    shared: new ThreadState(),
  };
}

function functionsUntil(endMs: number): VmFunctions {
  return (module, name) => {
    const found = hostFunction(module, name);
    if (found === undefined) return undefined;
    const { call } = found;
    return {
      ...found,
      call(vm, ...values) {
        if (performance.now() > endMs) throw new Error('the time for the trial is over');
        return call(vm, ...values);
      },
    };
  };
}

/** Throws an Error if `act` takes longer: code that loops is interrupted. */
function interruptAfter(ms: number, act: () => void): void {
  runInContext('act()', createContext({ act }), { timeout: ms, displayErrors: false });
}
