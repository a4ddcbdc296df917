// A plugin on one thread: its root context in a VM that other plugins may share, and another one after a failure.

import { getLogger, messageOf } from '../../sdk.js';
import type { RootContext } from '../contexts/root-context.js';
import type { LocalVms } from './local-vms.js';
import type { Plugin } from './plugin.js';

const logger = getLogger('wasm');

/** What the reloads of a plugin count. */
export interface ReloadStats {
  backedOff(): void;
  reloaded(isSuccess: boolean): void;
}

export class PluginUse {
  readonly plugin: Plugin;
  readonly #vms: LocalVms;
  readonly #stats: ReloadStats;
  readonly #random: () => number;
  #root: RootContext | undefined;
  /** When the VM was created last, on a monotonic clock. */
  #loadedMs: number;
  /** Streams and the chain itself. */
  #users = 1;

  /** `random`: from 0 to 1. */
  constructor(plugin: Plugin, vms: LocalVms, stats: ReloadStats, nowMs: number, random: () => number) {
    this.plugin = plugin;
    this.#vms = vms;
    this.#stats = stats;
    this.#random = random;
    this.#loadedMs = nowMs;
    this.#load();
  }

  /** Returns the root context for a new stream, which then must be released; undefined: the plugin has failed. */
  acquire(nowMs: number): RootContext | undefined {
    if (this.#root === undefined || this.#root.vm.hasFailed) this.#reload(nowMs);
    if (this.#root === undefined || this.#root.vm.hasFailed) return undefined;
    this.#users++;
    return this.#root;
  }

  /** Called when a stream, or the chain, has ended. */
  release(): void {
    if (--this.#users > 0) return;
    const root = this.#root;
    this.#root = undefined;
    if (root !== undefined) this.#vms.release(this.plugin, root);
  }

  #reload(nowMs: number): void {
    if (this.plugin.failurePolicy !== 'FAIL_RELOAD') return;
    // The jitter keeps the workers apart.
    if (nowMs - this.#loadedMs < this.plugin.reloadMs * (1 + this.#random() / 2)) return this.#stats.backedOff();
    this.#loadedMs = nowMs;
    const failed = this.#root;
    this.#root = undefined;
    this.#stats.reloaded(this.#load());
    // Shared data lasts as long as a VM of its vm_id: the new one is there first.
    if (failed !== undefined) this.#vms.release(this.plugin, failed);
  }

  #load(): boolean {
    try {
      this.#root = this.#vms.acquire(this.plugin);
      return true;
    } catch (error) {
      logger.critical(`Plugin ${this.plugin.name} failed to load: ${messageOf(error)}`);
      return false;
    }
  }
}
