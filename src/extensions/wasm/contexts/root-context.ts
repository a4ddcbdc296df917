// The root context of a plugin: its configuration, ticks and calls, and the numbers of its streams.

import { attributeReader, StreamInfo, Timer } from '../../sdk.js';
import { Result } from '../abi.js';
import type { Plugin } from '../plugin/plugin.js';
import { Context, type Vm } from './context.js';
import { attributeBytes } from './property-values.js';
import type { Root } from './root.js';
import { RootCalls } from './root-calls.js';

export class RootContext extends Context implements Root {
  readonly calls = new RootCalls(this);
  /** What get_status() returns. */
  status = { code: 0, message: '' };
  /** While the module reads it. */
  configuration: Buffer | undefined;
  protected readonly logPrefix: string;
  readonly #plugin: Plugin | undefined;
  readonly #ticks = new Timer<RootContext>(this, (root) => root.#tick());
  readonly #lastMoment = new Timer<RootContext>(this, (root) => root.end());
  #tickMs = 0;
  #isCreated = false;
  /** The module has delayed its end. */
  #isEnding = false;
  #hasEnded = false;

  /** Without a plugin it is the context of the VM itself. */
  constructor(vm: Vm, plugin: Plugin | undefined) {
    super(vm, plugin === undefined ? 0 : vm.nextId());
    this.#plugin = plugin;
    this.logPrefix = plugin === undefined ? '' : plugin.rootLogPrefix;
    vm.contexts.set(this.id, this);
  }

  get root(): RootContext {
    return this;
  }

  /** Calls on_vm_start(), then on_configure(). Throws an Error with Envoy's text if one of them refuses. */
  start(): void {
    const { vm } = this;
    this.configuration = this.#plugin!.configuration;
    try {
      this.#create();
      if (vm.call(this, 'proxy_on_vm_start', this.id, vm.settings.configuration.length) === 0)
        throw new Error('Failed to start base Wasm');
      if (vm.call(this, 'proxy_on_configure', this.id, this.configuration.length) === 0)
        throw new Error('Failed to configure base Wasm plugin');
    } finally {
      this.configuration = undefined;
    }
    if (vm.failure !== undefined) throw new Error(vm.failure);
  }

  setTickPeriod(ms: number): void {
    if (this.#hasEnded) return;
    const { timers } = this.vm.services;
    this.#tickMs = ms;
    timers.cancel(this.#ticks);
    if (ms > 0) timers.reschedule(this.#ticks, Math.min(ms, MAX_TICK_MS));
  }

  /** Called when the plugin is removed. The module may delay its end until it calls proxy_done(), for a limited time. */
  close(): void {
    this.#isEnding = true;
    if (this.vm.call(this, 'proxy_on_done', this.id) !== 0) this.end();
    else if (!this.#hasEnded) this.vm.services.timers.reschedule(this.#lastMoment, MAX_DELAY_MS);
  }

  override vmFailed(): void {
    this.setTickPeriod(0);
    this.calls.close();
  }

  override done(): Result {
    if (!this.#isEnding || this.#hasEnded) return Result.NotFound;
    this.vm.defer(() => this.end());
    return Result.Ok;
  }

  /** Called when nothing of the plugin may run any more. */
  end(): void {
    if (this.#hasEnded) return;
    this.setTickPeriod(0);
    this.#hasEnded = true;
    this.vm.services.timers.cancel(this.#lastMoment);
    this.calls.close();
    if (this.#isCreated) this.vm.call(this, 'proxy_on_delete', this.id);
    this.vm.contexts.delete(this.id);
  }

  ownProperty(path: readonly string[]): Buffer | undefined {
    const plugin = this.#plugin;
    switch (path[0]) {
      case 'plugin_name':
        return path.length === 1 && plugin ? Buffer.from(plugin.name) : undefined;
      case 'plugin_root_id':
        return path.length === 1 ? Buffer.from(plugin?.rootId ?? '') : undefined;
      case 'plugin_vm_id':
        return path.length === 1 ? Buffer.from(this.vm.settings.vmId) : undefined;
      case 'node':
        return nodeProperty(path);
      default:
        return undefined;
    }
  }

  #create(): void {
    if (this.#isCreated) return;
    this.#isCreated = true;
    this.vm.call(this, 'proxy_on_context_create', this.id, 0);
  }

  #tick(): void {
    if (this.vm.hasFailed) return;
    if (this.#tickMs > 0) this.vm.services.timers.reschedule(this.#ticks, Math.min(this.#tickMs, MAX_TICK_MS));
    this.vm.call(this, 'proxy_on_tick', this.id);
  }
}

function nodeProperty(path: readonly string[]): Buffer | undefined {
  const value = attributeReader(['xds', ...path])(NO_STREAM);
  return value === undefined ? undefined : attributeBytes(value);
}

/** The node does not depend on a stream. */
const NO_STREAM = new StreamInfo();
/** How long a module may delay its end. */
const MAX_DELAY_MS = 10_000;
/** The longest timer. */
const MAX_TICK_MS = 2 ** 31 - 1;
