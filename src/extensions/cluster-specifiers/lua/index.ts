// envoy.router.cluster_specifier_plugin.lua: a script in Lua chooses the cluster of a request.

import type { LuaConfig } from '../../../config/generated/api.js';
import { byteText, type ClusterSpecifierExtension, messageOf, obeyed, readDataSource } from '../../sdk.js';
import { LuaSpecifier } from './lua-specifier.js';
import { loadRouteScript } from './route-script.js';

const CONFIG = 'envoy.extensions.router.cluster_specifiers.lua.v3.LuaConfig';

export const luaClusterSpecifier: ClusterSpecifierExtension<LuaConfig> = {
  category: 'envoy.router.cluster_specifier_plugin',
  name: 'envoy.router.cluster_specifier_plugin.lua',
  typeUrls: [`type.googleapis.com/${CONFIG}`],
  implemented: { [CONFIG]: obeyed('source_code', 'default_cluster') },
  validate({ source_code: source }, report) {
    try {
      // As in Envoy, a script that fails when it is loaded is refused.
      loadRouteScript(readDataSource(source!).toString('latin1')).vm.close();
    } catch (error) {
      report('source_code', `script load error: ${messageOf(error)}`);
    }
  },
  createOnWorker({ source_code: source, default_cluster: otherwise = '' }, { clock, clusters }, where) {
    const code = readDataSource(source!, `${where}.source_code`).toString('latin1');
    return new LuaSpecifier(code, byteText(otherwise), clusters, clock);
  },
};
