// envoy.filters.http.composite: runs the filters that a matcher selects for each request.

import type { Any, Composite, CompositePerRoute } from '../../../../config/generated/api.js';
import {
  type HttpChain,
  type HttpChainContext,
  type HttpFilterExtension,
  type HttpFilterFactory,
  obeyed,
  Runtime,
  reportMistakes,
  unpack,
  type WorkerContext,
} from '../../../sdk.js';
import { checkExecutions, checkNamedChains, compileExecutions, type ExecutionTree, InnerChains } from './actions.js';
import { CompositeFilter } from './composite-filter.js';
import { CompositeStats } from './stats.js';

const PACKAGE = 'envoy.extensions.filters.http.composite.v3';
const COMPOSITE = `${PACKAGE}.Composite` as const;
const PER_ROUTE = `${PACKAGE}.CompositePerRoute` as const;

export const composite: HttpFilterExtension<Composite> = {
  category: 'envoy.filters.http',
  name: 'envoy.filters.http.composite',
  typeUrls: [`type.googleapis.com/${COMPOSITE}`, `type.googleapis.com/${PER_ROUTE}`],
  implemented: {
    [COMPOSITE]: obeyed('named_filter_chains', 'matcher'),
    [PER_ROUTE]: obeyed('matcher'),
    [`${PACKAGE}.FilterChainConfiguration`]: obeyed('typed_config'),
    [`${PACKAGE}.DynamicConfig`]: obeyed('name', 'config_discovery'),
  },
  validate(config, report) {
    const ofRoute = unpack(config as Any, PER_ROUTE);
    const { matcher } = ofRoute ?? (config as Composite);
    if (ofRoute === undefined) reportMistakes(report, '', () => checkNamedChains(config as Composite));
    if (matcher !== undefined)
      reportMistakes(report, 'matcher', () =>
        ofRoute === undefined
          ? checkExecutions(matcher, '', new Runtime())
          : void compileExecutions(matcher, '', new Runtime(), undefined),
      );
  },
  scopes: (_config, chain) => [{ prefix: prefixOf(chain), layout: CompositeStats }],
  createOnWorker: (config, context, chain) => createComposite(config, context, chain, config.matcher),
  /** The most specific configuration applies. */
  compileRouteConfig(configs, where, runtime): ExecutionTree {
    const { matcher = {} } = configs.at(-1) as CompositePerRoute;
    return compileExecutions(matcher, `${where}.matcher`, runtime, undefined);
  },
};

/** Creates a composite on a worker, whose matcher may be that of a match_delegate around it. */
export function createComposite(
  config: Composite,
  context: WorkerContext,
  chain: HttpChainContext,
  matcher: Composite['matcher'],
): HttpFilterFactory {
  const inner = new InnerChains(context, chain);
  try {
    inner.addNamed(config);
    const own = matcher && compileExecutions(matcher, 'matcher', context.runtime, (filter) => inner.build(filter));
    const { random, stats: threadStats } = context;
    const stats = context.scope(prefixOf(chain), CompositeStats);
    const shared = { named: inner.named, filterName: chain.filterName, random, threadStats, stats };
    return {
      create(stream, routeConfig) {
        const tree = (routeConfig as ExecutionTree | undefined) ?? own;
        return tree && new CompositeFilter(shared, stream, tree);
      },
      close: () => inner.close(),
    };
  } catch (error) {
    inner.close();
    throw error;
  }
}

function prefixOf({ statPrefix }: HttpChain): string {
  return `${statPrefix}composite.`;
}
