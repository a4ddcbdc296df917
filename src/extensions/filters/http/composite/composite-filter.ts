// The composite of one request: adds the filters that its matcher selects, right after itself.

import {
  byteText,
  type HeaderBlock,
  HeadersStatus,
  type HttpFilter,
  type HttpFilterFactory,
  type Random,
  type Scope,
  type StreamControl,
  type ThreadStats,
} from '../../../sdk.js';
import { type ExecutionTree, SKIPPED } from './actions.js';
import { CompositeStats } from './stats.js';

/** What the filters of one chain share on a worker. */
export interface CompositeContext {
  readonly named: ReadonlyMap<string, readonly HttpFilterFactory[]>;
  /** The name of the composite in its chain. */
  readonly filterName: string;
  readonly random: Random;
  /** Of matchers. */
  readonly threadStats: ThreadStats;
  readonly stats: Scope;
}

const STATE = 'envoy.extensions.filters.http.composite.matched_actions';

export class CompositeFilter implements HttpFilter {
  readonly #context: CompositeContext;
  readonly #stream: StreamControl;
  readonly #tree: ExecutionTree;

  constructor(context: CompositeContext, stream: StreamControl, tree: ExecutionTree) {
    this.#context = context;
    this.#stream = stream;
    this.#tree = tree;
  }

  decodeHeaders(headers: HeaderBlock): HeadersStatus {
    const { named, random, stats, threadStats } = this.#context;
    const found = this.#tree.find({ headers, info: this.#stream.info, stats: threadStats });
    if (found === undefined || found === SKIPPED) return HeadersStatus.Continue;
    if (found.sample?.isHit(random) === false) return HeadersStatus.Continue;
    // As in Envoy, a chain that does not exist adds nothing.
    const factories = found.factories ?? named.get(found.name);
    if (factories === undefined) return HeadersStatus.Continue;
    this.#stream.insertFilters(factories);
    stats.increment(CompositeStats.at.filter_delegation_success);
    this.#record(found.name);
    return HeadersStatus.Continue;
  }

  /** As in Envoy, the filter state has the actions by the names of their composites. */
  #record(action: string): void {
    const state = this.#stream.info.ownFilterState();
    const former = JSON.parse(state.get(STATE)?.text ?? '{}') as object;
    const text = JSON.stringify({ ...former, [byteText(this.#context.filterName)]: byteText(action) });
    state.set(STATE, { text, json: text, isReadOnly: false, sharing: 'NONE' });
  }
}
