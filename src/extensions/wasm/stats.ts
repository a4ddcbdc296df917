// Stats of Wasm, with Envoy's names.

import { defineLayout, type Scope } from '../sdk.js';

/** `wasm.` Modules are not loaded over the network. */
export const WasmStats = defineLayout({
  remote_load_cache_entries: 'gauge',
  remote_load_cache_hits: 'counter',
  remote_load_cache_misses: 'counter',
  remote_load_cache_negative_hits: 'counter',
  remote_load_fetch_failures: 'counter',
  remote_load_fetch_successes: 'counter',
  wasm_vm_count: 'gauge',
});
export const WASM_PREFIX = 'wasm.';

/** `wasm.envoy.wasm.runtime.v8.`: VMs of all workers. */
export const RuntimeStats = defineLayout({ active: 'gauge', created: 'counter' });
export const RUNTIME_PREFIX = 'wasm.envoy.wasm.runtime.v8.';

/** `wasm.<name of the plugin>.` */
export const PluginStats = defineLayout({
  vm_reload: 'counter',
  vm_reload_backoff: 'counter',
  vm_reload_failure: 'counter',
  vm_reload_success: 'counter',
});

/** What modules define. */
export const CustomStats = defineLayout({});
export const CUSTOM_PREFIX = 'wasmcustom.';

export function pluginPrefix(name: string): string {
  return `wasm.${name}.`;
}

/** The scopes of a plugin. */
export function wasmScopes(name: string) {
  return [
    { prefix: WASM_PREFIX, layout: WasmStats },
    { prefix: RUNTIME_PREFIX, layout: RuntimeStats },
    { prefix: pluginPrefix(name), layout: PluginStats },
    { prefix: CUSTOM_PREFIX, layout: CustomStats },
  ];
}

/** The stats of VMs, on one worker. */
export function vmCounts(scope: (prefix: string, layout: typeof WasmStats | typeof RuntimeStats) => Scope) {
  const wasm = scope(WASM_PREFIX, WasmStats);
  const runtime = scope(RUNTIME_PREFIX, RuntimeStats);
  return {
    created() {
      wasm.increment(WasmStats.at.wasm_vm_count);
      runtime.increment(RuntimeStats.at.active);
      runtime.increment(RuntimeStats.at.created);
    },
    removed() {
      wasm.decrement(WasmStats.at.wasm_vm_count);
      runtime.decrement(RuntimeStats.at.active);
    },
  };
}

/** The stats of a plugin's reloads, on one worker. */
export function reloadStats(scope: Scope) {
  return {
    backedOff: () => scope.increment(PluginStats.at.vm_reload_backoff),
    reloaded(isSuccess: boolean) {
      scope.increment(isSuccess ? PluginStats.at.vm_reload_success : PluginStats.at.vm_reload_failure);
    },
  };
}
