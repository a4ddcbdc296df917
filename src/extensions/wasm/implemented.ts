// How Baton treats the fields of a plugin's configuration.

import { accepted, byValue, dataOf, type ImplementedTable, obeyed, refused } from '../sdk.js';
import { CONFIGURATIONS } from './plugin/any-bytes.js';

export const PLUGIN_FIELDS: ImplementedTable = {
  'envoy.extensions.wasm.v3.PluginConfig': {
    ...obeyed('name', 'root_id', 'vm_config', 'fail_open', 'reload_config'),
    configuration: dataOf(...CONFIGURATIONS),
    ...obeyed('capability_restriction_config', 'allow_on_headers_stop_iteration'),
    failure_policy: byValue({ UNSPECIFIED: true, FAIL_RELOAD: true, FAIL_CLOSED: true, FAIL_OPEN: true }),
  },
  'envoy.extensions.wasm.v3.ReloadConfig': obeyed('backoff'),
  'envoy.extensions.wasm.v3.VmConfig': {
    ...obeyed('vm_id', 'runtime', 'code', 'environment_variables', 'capability_restriction_config'),
    configuration: dataOf(...CONFIGURATIONS),
    allow_precompiled: accepted('modules are compiled when they are loaded, which V8 does in milliseconds'),
    nack_on_code_cache_miss: accepted('it applies to modules that are loaded over the network'),
  },
  'envoy.extensions.wasm.v3.EnvironmentVariables': obeyed('host_env_keys', 'key_values'),
  'envoy.extensions.wasm.v3.CapabilityRestrictionConfig': obeyed('allowed_capabilities'),
  'envoy.extensions.wasm.v3.SanitizationConfig': {},
  'envoy.config.core.v3.AsyncDataSource': {
    local: true,
    remote: refused('modules are not loaded over the network: put the file on this machine, and name it in local'),
  },
};
