// baton.filters.network.script: a network filter that a user has written in TypeScript, loaded at run time.

import type { NetworkScriptScript as Script } from '../../../../config/generated/api.js';
import { CurrentVersion } from '../../../script/current-version.js';
import { sharedByStreams } from '../../../script/shared.js';
import { ScriptFilterStats } from '../../../script/stats.js';
import { byValue, type FilteredClient, type NetworkFilterExtension, obeyed } from '../../../sdk.js';
import { ConnectionFilter, type SharedByConnections } from './connection-filter.js';
import { UnusableFilter } from './unusable-filter.js';

export const networkScript: NetworkFilterExtension<Script> = {
  category: 'envoy.filters.network',
  name: 'baton.filters.network.script',
  typeUrls: ['type.googleapis.com/baton.filters.network.script.v1.Script'],
  implemented: {
    'baton.filters.network.script.v1.Script': {
      ...obeyed('module', 'config', 'timeout'),
      failure_policy: byValue({ CLOSED: true, OPEN: true }),
    },
  },
  scopes: ({ module }) => [{ prefix: statsPrefix(module!), layout: ScriptFilterStats }],
  createOnPrimary: ({ config, module }, context) => [context.scripts.use(module!, 'network filter', config)],
  createOnWorker(config, _chain, context) {
    const script = context.scripts.module(config.module!);
    const shared = sharedByStreams(script, statsPrefix(config.module!), config, context);
    const current = new CurrentVersion(script, 'network filter', config.config, shared.faults);
    const { clusters, memory, transport } = context;
    const connections: SharedByConnections = {
      ...shared,
      memory,
      hasCluster: (name) => clusters.find(name)?.current !== undefined,
      beginTurn: () => transport.beginTurn(),
    };
    return {
      create(client: FilteredClient) {
        const version = current.get();
        if (version !== undefined) return new ConnectionFilter(connections, version, client);
        shared.stats.increment(ScriptFilterStats.at.errors);
        return shared.failsOpen ? undefined : new UnusableFilter(client);
      },
    };
  },
};

function statsPrefix(module: string): string {
  return `network_filter.script.${module}.`;
}
