// GET /server_info: which server this is and with what options it runs (envoy.admin.v3.ServerInfo).

import { releaseNumber } from '../../common/version.js';
import type { AdminHandler } from '../admin-handler.js';
import { JSON_TYPE, type JsonObject, prettyJson } from '../json.js';

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
      command_line_options: services.commandLineOptions as JsonObject,
      // Unlike elsewhere, fields with their default value are printed.
      node: { ...defaultNode(), ...(services.node as JsonObject) },
      uptime_current_epoch: `${Math.floor(currentEpoch)}s`,
      uptime_all_epochs: `${Math.floor(allEpochs)}s`,
    };
    return { contentType: JSON_TYPE, body: `${prettyJson(info)}\n` };
  },
};

function defaultNode(): JsonObject {
  const [major = 0, minor = 0, patch = 0] = releaseNumber()
    .split(/[.-]/)
    .map((part) => Number.parseInt(part, 10));
  return {
    id: '',
    cluster: '',
    user_agent_name: 'baton',
    user_agent_build_version: { version: { major_number: major, minor_number: minor, patch }, metadata: {} },
    metadata: {},
    dynamic_parameters: {},
    extensions: [],
    client_features: [],
    listening_addresses: [],
  };
}
