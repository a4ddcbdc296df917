// A plugin as its configuration describes it (PluginConfig): the code, the settings of its VM, and what happens when it fails.

import type { FailurePolicy } from '../../../config/generated/api.js';
import type { VmSettings } from '../vm/wasm-vm.js';

export interface Plugin {
  readonly name: string;
  readonly rootId: string;
  readonly configuration: Buffer;
  readonly vm: VmSettings;
  readonly failurePolicy: FailurePolicy;
  /** Between reloads of a VM that has ended. */
  readonly reloadMs: number;
  /** StopIteration stops the head only: the body still comes to the module. */
  readonly allowsStopIteration: boolean;
  /** Equal for plugins that share a root context. */
  readonly key: string;
  /** Of log lines of the root context, and of streams. */
  readonly rootLogPrefix: string;
  readonly streamLogPrefix: string;
}
