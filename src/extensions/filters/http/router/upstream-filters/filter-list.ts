// The HTTP filters of a cluster or of a router (upstream_http_filters), built on a worker.

import type { Any, HttpFilter } from '../../../../../config/generated/api.js';
import { closeFactories } from '../../../../../http/filters/close-factories.js';
import { FILTER_OFF, FILTER_ON } from '../../../../../http/routing/tables/route-levels.js';
import type { RequestPool } from '../../../../../upstream/connections/http-pool.js';
import type { FilteredTry, RequestFilters } from '../../../../../upstream/request-filters.js';
import { createFactory } from '../../../../create-factory.js';
import type { HttpChainPlace, HttpFilterExtension, WorkerContext } from '../../../../factories.js';
import type { PlacedFilter } from './placed-filter.js';
import type { UpstreamRouteConfigs } from './route-configs.js';
import { TryFilters } from './try-filters.js';

export class FilterList implements RequestFilters {
  readonly #thread: WorkerContext;
  readonly #bufferLimit: number;
  readonly #filters: readonly PlacedFilter[];

  constructor(filters: readonly PlacedFilter[], thread: WorkerContext, bufferLimit: number) {
    this.#filters = filters;
    this.#thread = thread;
    this.#bufferLimit = bufferLimit;
  }

  around(pool: RequestPool, current: FilteredTry): RequestPool {
    if (this.#filters.length === 0) return pool;
    // The slot of the terminal filter: see routeFilters().
    const configs = current.stream.route?.filterConfigs.at(-1) as UpstreamRouteConfigs | undefined;
    const filtered = new TryFilters(pool, current, this.#thread, this.#bufferLimit);
    try {
      return filtered.create(this.#filters, (filter) => configOf(filter, configs)) ? filtered : pool;
    } catch (error) {
      // Nobody else knows the filters that were created before.
      filtered.end();
      throw error;
    }
  }

  close(): void {
    closeFactories(this.#filters, this.#thread.transport);
  }
}

/** A route's configuration of another kind of filter has no effect, as in Envoy. */
function configOf({ extension, name }: PlacedFilter, configs: UpstreamRouteConfigs | undefined): unknown {
  const found = configs?.get(name);
  if (found === undefined || found === FILTER_OFF || found === FILTER_ON) return found;
  const { config, extension: given } = found;
  return given === extension ? config : undefined;
}

/**
 * Builds the filters before the codec, as from beforeCodec(). `chain`: the prefix of their stats, the place that identifies the list, and the limit of what a
 * filter may hold. If a filter cannot be built, closes the others and throws.
 */
export function createFilterList(
  configs: readonly HttpFilter[],
  context: WorkerContext,
  chain: HttpChainPlace,
): FilterList {
  const filters: PlacedFilter[] = [];
  try {
    for (const [index, { disabled: isDisabled = false, name = '', typed_config: config }] of configs.entries()) {
      const extension = filterOf(config!, context);
      const place = { ...chain, place: `${chain.place} filter ${index}`, filterName: name };
      filters.push({ name, extension, isDisabled, factory: createFactory(extension, config!, context, place) });
    }
  } catch (error) {
    closeFactories(filters, context.transport);
    throw error;
  }
  return new FilterList(filters, context, chain.bufferLimit);
}

function filterOf(config: Any, { extensions }: WorkerContext): HttpFilterExtension {
  const extension = extensions.httpFilter(config);
  if (extension.isTerminal) throw new TypeError(`'${extension.name}' cannot run in front of a connection`);
  return extension;
}
