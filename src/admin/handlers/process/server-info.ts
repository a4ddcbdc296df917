// GET /server_info: version, state and options of the server (envoy.admin.v3.ServerInfo).

import type { Node } from '../../../config/generated/api.js';
import type { AdminHandler } from '../../admin-handler.js';
import { JSON_TYPE, type JsonObject, prettyJson } from '../../json.js';

export const serverInfo: AdminHandler = {
  path: '/server_info',
  mutates: false,
  help: 'print server version/status information',
  parameters: [],
  handle(_request, services) {
    const { currentEpoch, allEpochs } = services.uptimes();
    const info = {
      version: services.version,
      state: services.state(),
      hot_restart_version: services.hotRestartVersion,
      hot_restart_initializing: services.isHotRestartInitializing(),
      command_line_options: services.commandLineOptions as JsonObject,
      node: nodeJson(services.node),
      uptime_current_epoch: `${Math.floor(currentEpoch)}s`,
      uptime_all_epochs: `${Math.floor(allEpochs)}s`,
    };
    return { contentType: JSON_TYPE, body: `${prettyJson(info)}\n` };
  },
};

/** Unlike in other answers, fields with default values are printed. */
function nodeJson(node: Node): JsonObject {
  return {
    id: '',
    cluster: '',
    metadata: {},
    dynamic_parameters: {},
    client_features: [],
    listening_addresses: [],
    ...(node as JsonObject),
    extensions: (node.extensions ?? []).map((extension) => ({ disabled: false, ...(extension as JsonObject) })),
  };
}
