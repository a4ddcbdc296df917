// The VMs of one thread. Plugins with the same vm_id, configuration and code share a VM; equal plugins share a root context.

import type { Context, Vm } from '../contexts/context.js';
import { RootContext } from '../contexts/root-context.js';
import { hostFunction } from '../host/index.js';
import type { VmServices } from '../vm/services.js';
import { type HostFunctions, type VmSettings, WasmVm } from '../vm/wasm-vm.js';
import type { Plugin } from './plugin.js';

export type VmFunctions = HostFunctions<Context>;

/** What is counted of VMs. */
export interface VmCounts {
  created(): void;
  removed(): void;
}

interface LocalVm {
  readonly vm: Vm;
  readonly roots: Map<string, { readonly root: RootContext; users: number }>;
}

export class LocalVms {
  readonly #services: VmServices;
  readonly #counts: VmCounts;
  readonly #functions: VmFunctions;
  /** By the key of their settings; VMs that have ended are not found any more. */
  readonly #vms = new Map<string, LocalVm>();
  readonly #all = new Map<Vm, LocalVm>();

  /** `functions`: what modules import. */
  constructor(services: VmServices, counts: VmCounts, functions: VmFunctions = hostFunction) {
    this.#services = services;
    this.#counts = counts;
    this.#functions = functions;
  }

  /** Returns the plugin's root context, started. Throws an Error with Envoy's text. */
  acquire(plugin: Plugin): RootContext {
    const local = this.#vmOf(plugin.vm);
    const known = local.roots.get(plugin.key);
    if (known !== undefined) {
      known.users++;
      return known.root;
    }
    const root = new RootContext(local.vm, plugin);
    local.roots.set(plugin.key, { root, users: 1 });
    try {
      root.start();
    } catch (error) {
      this.release(plugin, root);
      throw error;
    }
    return root;
  }

  release(plugin: Plugin, root: RootContext): void {
    const local = this.#all.get(root.vm);
    const use = local?.roots.get(plugin.key);
    if (local === undefined || use === undefined || --use.users > 0) return;
    local.roots.delete(plugin.key);
    root.close();
    if (local.roots.size > 0) return;
    this.#all.delete(local.vm);
    if (this.#vms.get(plugin.vm.key) === local) this.#vms.delete(plugin.vm.key);
    this.#counts.removed();
    const { vmId } = plugin.vm;
    const { shared } = this.#services;
    shared.leave(local.vm);
    for (const { settings } of this.#all.keys()) if (settings.vmId === vmId) return;
    shared.forget(vmId);
  }

  #vmOf(settings: VmSettings): LocalVm {
    const known = this.#vms.get(settings.key);
    if (known !== undefined && !known.vm.hasFailed) return known;
    const local = { vm: createVm(settings, this.#services, this.#functions), roots: new Map() };
    this.#counts.created();
    this.#vms.set(settings.key, local);
    this.#all.set(local.vm, local);
    return local;
  }
}

/** Instantiates a module. Throws an Error with Envoy's text. */
export function createVm(settings: VmSettings, services: VmServices, functions: VmFunctions): Vm {
  return new WasmVm<Context>(settings, services, functions, (vm) => new RootContext(vm, undefined));
}
