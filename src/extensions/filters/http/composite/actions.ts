// The actions of composite: which filters run for a request.

import type {
  Any,
  Composite,
  ExecuteFilterAction,
  HttpFilter,
  MatcherMatcher,
} from '../../../../config/generated/api.js';
import {
  actionFilters,
  BatonError,
  closeFactories,
  createFactory,
  type HttpChainContext,
  type HttpFilterFactory,
  type Runtime,
  type RuntimeFraction,
  unpack,
  type WorkerContext,
} from '../../../sdk.js';
import { compileMatcher, type MatchTree } from '../../common/matching/matcher.js';
import { DiscoveredFilter } from '../../network/http-connection-manager/discovered-filter.js';

export const ACTION = 'envoy.extensions.filters.http.composite.v3.ExecuteFilterAction';
export const SKIP = 'envoy.extensions.filters.common.matcher.action.v3.SkipFilter';

/** What an action does. */
export interface Execution {
  /** As the filter state shows it: the name of the filter or the chain. */
  readonly name: string;
  /** Undefined: those of the named chain `name`. */
  readonly factories: readonly HttpFilterFactory[] | undefined;
  /** The share of the requests for which the filters run; undefined: all. */
  readonly sample: RuntimeFraction | undefined;
}

/** Undefined: no filter runs. */
export type ExecutionTree = MatchTree<Execution | typeof SKIPPED>;
/** The action SkipFilter, which executes nothing. */
export const SKIPPED = Symbol('skipped');

/** Builds the filters of one composite on a worker. */
export class InnerChains {
  readonly named = new Map<string, readonly HttpFilterFactory[]>();
  readonly #context: WorkerContext;
  readonly #chain: HttpChainContext;
  readonly #factories: { readonly factory: HttpFilterFactory }[] = [];

  /** Throws what a filter throws; close() must be called then too. */
  constructor(context: WorkerContext, chain: HttpChainContext) {
    this.#context = context;
    this.#chain = chain;
  }

  addNamed({ named_filter_chains: chains = {} }: Composite): void {
    for (const [name, { typed_config: filters = [] }] of Object.entries(chains))
      this.named.set(
        name,
        filters.map((filter) => this.build({ ...filter })),
      );
  }

  build(filter: HttpFilter): HttpFilterFactory {
    const { name = '', typed_config: config } = filter;
    const { place } = this.#chain;
    const own = { ...this.#chain, filterName: name, place: `${place} inner ${this.#factories.length}` };
    const factory = config === undefined ? new DiscoveredFilter(filter, this.#context, own) : this.#static(config, own);
    this.#factories.push({ factory });
    return factory;
  }

  #static(config: Any, chain: HttpChainContext): HttpFilterFactory {
    const extension = this.#context.extensions.httpFilter(config);
    if (extension.isTerminal) throw new TypeError(`'${extension.name}' ends a chain, and cannot run inside a filter`);
    return createFactory(extension, config, this.#context, chain);
  }

  close(): void {
    closeFactories(this.#factories, this.#context.transport);
  }
}

/**
 * Compiles a matcher. `build`: undefined where only named chains may be executed. `onResponseInput` is called for each input of responses;
 * undefined: there must be none. Throws a BatonError.
 */
export function compileExecutions(
  config: MatcherMatcher,
  where: string,
  runtime: Runtime,
  build: ((filter: HttpFilter) => HttpFilterFactory) | undefined,
  onResponseInput?: () => void,
): ExecutionTree {
  return compileMatcher(config, where, {
    isHttp: true,
    isResponse: onResponseInput !== undefined,
    onResponseInput,
    action(any: Any, at: string): Execution | typeof SKIPPED {
      if (unpack(any, SKIP) !== undefined) return SKIPPED;
      const action = unpack(any, ACTION);
      if (action !== undefined) return executionOf(action, any, at, runtime, build);
      throw new BatonError('CONFIG_INVALID', `the action is an ${ACTION} or a ${SKIP}`, { where: at });
    },
  });
}

function executionOf(
  action: ExecuteFilterAction,
  any: Any,
  where: string,
  runtime: Runtime,
  build: ((filter: HttpFilter) => HttpFilterFactory) | undefined,
): Execution {
  const { dynamic_config: dynamic, filter_chain: chain, filter_chain_name: named, sample_percent: percent } = action;
  const sample = percent && runtime.fractionOf(percent, {});
  if (chain === undefined && named) return { name: named, factories: undefined, sample };
  const filters = actionFilters(any, []);
  if (filters.length === 0) {
    const what = chain === undefined ? 'the action needs a filter' : 'filter_chain must contain at least one filter.';
    throw new BatonError('CONFIG_INVALID', what, { where });
  }
  if (build === undefined)
    throw new BatonError('CONFIG_INVALID', 'in a route an action executes a named chain of the filter', {
      where,
      remedy: 'put the filters into named_filter_chains of the filter, and set filter_chain_name',
    });
  const factories = filters.map(({ filter }) => build(filter));
  const name = chain !== undefined ? 'filter_chain' : dynamic === undefined ? (action.typed_config?.name ?? '') : '';
  return { name, factories, sample };
}

/** Throws what compileExecutions() would throw, without building filters. */
export function checkExecutions(config: MatcherMatcher, where: string, runtime: Runtime): void {
  compileExecutions(config, where, runtime, () => NO_FACTORY);
}

const NO_FACTORY: HttpFilterFactory = { create: () => undefined };

/** Throws a BatonError for a chain without filters. */
export function checkNamedChains({ named_filter_chains: chains = {} }: Composite): void {
  for (const [name, { typed_config: filters = [] }] of Object.entries(chains)) {
    if (filters.length > 0) continue;
    throw new BatonError('CONFIG_INVALID', `Named filter chain '${name}' must contain at least one filter.`, {
      where: `named_filter_chains[${JSON.stringify(name)}]`,
    });
  }
}
