// baton.filters.http.script: a filter that a user has written in TypeScript, loaded at run time.

import type { ScriptScript as Script, ScriptPerRoute } from '../../../../config/generated/api.js';
import { ScriptFilterStats } from '../../../script/stats.js';
import { byValue, type HttpFilterExtension, obeyed } from '../../../sdk.js';
import { type RouteScript, ScriptChain, statsPrefix } from './script-chain.js';

export const script: HttpFilterExtension<Script> = {
  category: 'envoy.filters.http',
  name: 'baton.filters.http.script',
  typeUrls: [
    'type.googleapis.com/baton.filters.http.script.v1.Script',
    'type.googleapis.com/baton.filters.http.script.v1.ScriptPerRoute',
  ],
  implemented: {
    'baton.filters.http.script.v1.Script': {
      ...obeyed('module', 'config', 'timeout'),
      failure_policy: byValue({ CLOSED: true, OPEN: true }),
    },
    'baton.filters.http.script.v1.ScriptPerRoute': 'all',
  },
  scopes: ({ module }, chain) => [{ prefix: statsPrefix(module!, chain), layout: ScriptFilterStats }],
  createOnPrimary: ({ config, module }, context) => context.scripts.use(module!, 'http filter', config),
  createOnWorker: (config, context, chain) => new ScriptChain(config, context, chain),
  /** The most specific configuration applies. */
  compileRouteConfig: (configs): RouteScript => ({ config: (configs.at(-1) as ScriptPerRoute | undefined)?.config }),
};
