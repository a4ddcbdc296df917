// envoy.filters.http.match_delegate: a filter with a matcher, which skips it for some requests or responses.

import type {
  Any,
  Composite,
  ExtensionWithMatcher,
  ExtensionWithMatcherPerRoute,
  MatcherMatcher,
} from '../../../../config/generated/api.js';
import {
  createFactory,
  type HttpChainContext,
  type HttpFilterExtension,
  type HttpFilterFactory,
  obeyed,
  Runtime,
  refused,
  reportMistakes,
  unpack,
  type WorkerContext,
} from '../../../sdk.js';
import { checkExecutions, compileExecutions } from '../composite/actions.js';
import { createComposite } from '../composite/index.js';
import { delegateTo, type SkipTree } from './delegating-filter.js';

const PACKAGE = 'envoy.extensions.common.matching.v3';
const DELEGATE = `${PACKAGE}.ExtensionWithMatcher` as const;
const PER_ROUTE = `${PACKAGE}.ExtensionWithMatcherPerRoute` as const;
const COMPOSITE = 'envoy.extensions.filters.http.composite.v3.Composite';

export const matchDelegate: HttpFilterExtension<ExtensionWithMatcher> = {
  category: 'envoy.filters.http',
  name: 'envoy.filters.http.match_delegate',
  typeUrls: [`type.googleapis.com/${DELEGATE}`, `type.googleapis.com/${PER_ROUTE}`],
  implemented: {
    [DELEGATE]: { ...obeyed('xds_matcher', 'extension_config'), matcher: refused('use xds_matcher') },
    [PER_ROUTE]: obeyed('xds_matcher'),
  },
  validate(config, report) {
    const ofRoute = unpack(config as Any, PER_ROUTE);
    const { xds_matcher: matcher } = ofRoute ?? (config as ExtensionWithMatcher);
    if (matcher === undefined) return;
    const inner = (config as ExtensionWithMatcher).extension_config?.typed_config;
    const executes = ofRoute === undefined && unpack(inner, COMPOSITE) !== undefined;
    reportMistakes(report, 'xds_matcher', () =>
      executes ? checkExecutions(matcher, '', new Runtime()) : void compileSkips(matcher, '', new Runtime()),
    );
  },
  createOnWorker({ extension_config: inner, xds_matcher: matcher }, context, chain) {
    const own = inner!.typed_config!;
    const composite = unpack(own, COMPOSITE);
    if (composite !== undefined) return compositeOf(composite, matcher, context, chain);
    const factory = factoryOf(own, context, chain);
    const skip = matcher && compileSkips(matcher, 'xds_matcher', context.runtime);
    return {
      create(stream, routeConfig) {
        const tree = (routeConfig as SkipTree | undefined) ?? skip;
        // As in Envoy, a filter without a matcher is skipped.
        return tree && delegateTo(factory, stream, tree, context.stats);
      },
      close: () => factory.close?.(),
    };
  },
  /** The most specific configuration applies. */
  compileRouteConfig(configs, where, runtime): SkipTree {
    const { xds_matcher: matcher = {} } = configs.at(-1) as ExtensionWithMatcherPerRoute;
    return compileSkips(matcher, `${where}.xds_matcher`, runtime);
  },
};

/** The actions may name chains of a composite. */
function compileSkips(config: MatcherMatcher, where: string, runtime: Runtime): SkipTree {
  let usesResponse = false;
  const tree = compileExecutions(config, where, runtime, undefined, () => {
    usesResponse = true;
  });
  return { tree, usesResponse };
}

/** The matcher selects what the composite executes. */
function compositeOf(
  config: Composite,
  matcher: MatcherMatcher | undefined,
  context: WorkerContext,
  chain: HttpChainContext,
): HttpFilterFactory {
  const composite = createComposite(config, context, chain, matcher);
  return {
    create: (stream, routeConfig) => composite.create(stream, (routeConfig as SkipTree | undefined)?.tree),
    close: () => composite.close?.(),
  };
}

function factoryOf(config: Any, context: WorkerContext, chain: HttpChainContext): HttpFilterFactory {
  const extension = context.extensions.httpFilter(config);
  if (extension.isTerminal) throw new TypeError(`'${extension.name}' ends a chain, and cannot run inside a filter`);
  return createFactory(extension, config, context, chain);
}
