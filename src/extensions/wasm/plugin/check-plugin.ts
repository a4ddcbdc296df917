// The rules of a plugin's configuration that the API does not express, and a trial of its module.

import type { PluginConfig } from '../../../config/generated/api.js';
import { messageOf, type Report } from '../../sdk.js';
import { anyBytes } from './any-bytes.js';
import { readPlugin } from './read-plugin.js';
import { tryPlugin } from './trial.js';

/** The runtime of modules. The other one that Envoy has runs code that is compiled into Envoy. */
const V8 = 'envoy.wasm.runtime.v8';

/** Reports mistakes at paths within the message that has the plugin in its field `config`. */
export function checkPlugin(config: PluginConfig | undefined, report: Report): void {
  const found: [string, string][] = [];
  if (config !== undefined) {
    rules(config, (path, text) => found.push([`config${path === '' ? '' : `.${path}`}`, text]));
  } else found.push(['', 'config must be set: it names the module']);
  for (const [path, text] of found) report(path, text);
  if (found.length > 0 || config === undefined) return;
  try {
    tryPlugin(readPlugin(config));
  } catch (error) {
    report('config', `Unable to create Wasm plugin ${config.name ?? ''}: ${messageOf(error)}`);
  }
}

function rules(config: PluginConfig, report: Report): void {
  const { fail_open, failure_policy = 'UNSPECIFIED', vm_config: vm } = config;
  if (fail_open === true && failure_policy !== 'UNSPECIFIED')
    report('fail_open', 'only one of fail_open or failure_policy can be set');
  if (vm === undefined) return report('', `Unable to create Wasm plugin ${config.name ?? ''}: vm_config must be set`);
  if (vm.runtime !== undefined && vm.runtime !== '' && vm.runtime !== V8)
    report('vm_config.runtime', `modules run in ${V8}: there is no other runtime`);
  if (vm.code?.local === undefined) report('vm_config.code', 'local must be set: it has the module');
  const keys = vm.environment_variables?.host_env_keys ?? [];
  for (const key of keys)
    if (Object.hasOwn(vm.environment_variables?.key_values ?? {}, key))
      report(
        'vm_config.environment_variables',
        `Key ${key} is duplicated in envoy.extensions.wasm.v3.VmConfig.environment_variables for ${config.name ?? ''}. All the keys must be unique.`,
      );
  checkAny(config.configuration, 'configuration', report);
  checkAny(vm.configuration, 'vm_config.configuration', report);
}

function checkAny(any: PluginConfig['configuration'], path: string, report: Report): void {
  try {
    anyBytes(any);
  } catch (error) {
    report(path, messageOf(error));
  }
}
