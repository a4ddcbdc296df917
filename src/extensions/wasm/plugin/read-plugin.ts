// Reads a plugin's configuration and its code.

import { createHash } from 'node:crypto';
import type { FailurePolicy, PluginConfig, VmConfig } from '../../../config/generated/api.js';
import { durationMs, readDataSource } from '../../sdk.js';
import { hostSignature } from '../host/index.js';
import { checkModule, ModuleError } from '../module/index.js';
import type { VmSettings } from '../vm/wasm-vm.js';
import { anyBytes } from './any-bytes.js';
import type { Plugin } from './plugin.js';

/** Reads the code and checks it. Throws a BatonError for code that cannot be read, and a ModuleError for a bad module. */
export function readPlugin(config: PluginConfig, where?: string): Plugin {
  const { name = '', root_id: rootId = '', vm_config } = config;
  const configuration = anyBytes(config.configuration);
  const vm = vmSettings(vm_config, config, where);
  const { vmId } = vm;
  const rootLogPrefix = prefixOf(rootId, vmId);
  return {
    ...{ name, rootId, configuration, vm, rootLogPrefix },
    failurePolicy: failurePolicyOf(config),
    reloadMs: durationMs(config.reload_config?.backoff?.base_interval, 1000),
    allowsStopIteration: config.allow_on_headers_stop_iteration === true,
    key: sha256(name, rootId, configuration, vm.key, failurePolicyOf(config)),
    streamLogPrefix: prefixOf(name, rootId, vmId),
  };
}

function failurePolicyOf({ fail_open, failure_policy = 'UNSPECIFIED' }: PluginConfig): FailurePolicy {
  if (failure_policy !== 'UNSPECIFIED') return failure_policy;
  return fail_open === true ? 'FAIL_OPEN' : 'FAIL_CLOSED';
}

function vmSettings(vm: VmConfig | undefined, plugin: PluginConfig, where?: string): VmSettings {
  const source = vm?.code?.local;
  if (vm === undefined || source === undefined) throw new ModuleError('it has no code');
  const code = readDataSource(source, where && `${where}.vm_config.code.local`);
  const configuration = anyBytes(vm.configuration);
  const vmId = vm.vm_id ?? '';
  const restriction = vm.capability_restriction_config ?? plugin.capability_restriction_config;
  const names = Object.keys(restriction?.allowed_capabilities ?? {});
  const environment = environmentOf(vm);
  return {
    vmId,
    key: sha256(vmId, configuration, code, JSON.stringify([environment, names.sort()])),
    configuration,
    module: checkModule(code, hostSignature),
    environment,
    allowed: names.length === 0 ? undefined : new Set(names),
  };
}

function environmentOf({ environment_variables: variables }: VmConfig): string[] {
  const { host_env_keys: keys = [], key_values: values = {} } = variables ?? {};
  const entries = new Map<string, string>();
  for (const key of keys) if (process.env[key] !== undefined) entries.set(key, process.env[key]);
  for (const [key, value] of Object.entries(values)) entries.set(key, value);
  return [...entries].map(([key, value]) => `${key}=${value}`);
}

function prefixOf(...parts: string[]): string {
  return parts
    .filter((part) => part !== '')
    .map((part) => ` ${part}`)
    .join('');
}

function sha256(...parts: readonly (string | Uint8Array)[]): string {
  const hash = createHash('sha256');
  // Lengths keep neighbours apart.
  for (const part of parts) hash.update(`${part.length}:`).update(part);
  return hash.digest('hex');
}
