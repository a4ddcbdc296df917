// Implemented fields of the bootstrap itself.

import type { ImplementedTable } from './table.js';

export const BOOTSTRAP: ImplementedTable = {
  'envoy.config.bootstrap.v3.Bootstrap': {
    node: true,
    static_resources: true,
    stats_flush_interval: true,
    admin: true,
  },
  'envoy.config.bootstrap.v3.Bootstrap.StaticResources': { listeners: true, clusters: true },
  'envoy.config.bootstrap.v3.Admin': { address: true, allow_paths: true },
  'envoy.config.core.v3.Node': { id: true, cluster: true, metadata: true, locality: true },
};
