// The dumps of /config_dump, from the configuration that the server runs with.

import type { ConfigDump } from '../../../admin/config-dump/config-dump.js';
import type { JsonObject } from '../../../admin/json.js';
import type { Bootstrap } from '../../../config/generated/api.js';
import type { RunningConfiguration } from '../../running/running-configuration.js';
import { clustersDump } from './clusters-dump.js';
import type { Dump } from './dump.js';
import { endpointsDump } from './endpoints-dump.js';
import { filterConfigsDump } from './filter-configs-dump.js';
import { listenersDump } from './listeners-dump.js';
import { routesDump, scopedRoutesDump } from './routes-dump.js';
import { secretsDump } from './secrets-dump.js';

export interface DumpedConfiguration {
  /** The running bootstrap without secrets, with the complete node. */
  readonly bootstrap: Bootstrap;
  /** When the bootstrap was loaded. */
  readonly loadedAt: Date;
}

/** Returns the dumps in the order of /config_dump. */
export function configDumps(
  running: RunningConfiguration,
  config: DumpedConfiguration,
  includeEds: boolean,
): ConfigDump[] {
  const { bootstrap } = config;
  const { clusters = [], listeners = [], secrets = [] } = bootstrap.static_resources ?? {};
  const last_updated = config.loadedAt.toISOString();
  const dumps: Dump[] = [
    { message: 'BootstrapConfigDump', fields: { bootstrap: bootstrap as JsonObject, last_updated } },
    clustersDump(running, clusters, config.loadedAt),
    ...(running.filterConfigs.isUsed ? [filterConfigsDump(running.filterConfigs)] : []),
    ...(includeEds ? [endpointsDump(running.clusters.byName)] : []),
    listenersDump(running, listeners, last_updated),
    // Present only with connection managers.
    ...(running.routes.isUsed ? [scopedRoutesDump(running.routes), routesDump(running.routes)] : []),
    secretsDump(running.secrets, secrets, last_updated),
  ];
  return dumps.map(complete);
}

function complete({ message, fields = {}, lists = {} }: Dump): ConfigDump {
  return {
    message: `envoy.admin.v3.${message}`,
    fields,
    lists: Object.entries(lists).map(([field, resources]) => ({ field, resources })),
  };
}
