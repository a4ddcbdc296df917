// HTTP filters inside other HTTP filters: those of composite and match_delegate.

import type {
  Any,
  ExecuteFilterAction,
  FilterChainConfiguration,
  HttpFilter,
  MatcherMatcher,
  TypedExtensionConfig,
} from '../generated/api.js';
import { unpack } from '../schema/any.js';
import type { Path } from '../text/path.js';

/** A filter inside another one, as an element of http_filters, and its path within the configuration of the other one. */
export interface InnerFilter {
  readonly filter: HttpFilter;
  readonly path: Path;
}

/** Returns the filters directly inside a filter with this configuration. */
export function innerFilters(config: Any | undefined): InnerFilter[] {
  const composite = unpack(config, 'envoy.extensions.filters.http.composite.v3.Composite');
  if (composite !== undefined) {
    const named = Object.entries(composite.named_filter_chains ?? {}).flatMap(([name, chain]) =>
      chainOf(chain, ['named_filter_chains', name]),
    );
    return [...named, ...matcherFilters(composite.matcher, ['matcher'])];
  }
  const delegate = unpack(config, 'envoy.extensions.common.matching.v3.ExtensionWithMatcher');
  if (delegate === undefined) return [];
  return [
    ...single(delegate.extension_config, ['extension_config']),
    ...matcherFilters(delegate.xds_matcher, ['xds_matcher']),
  ];
}

/** Returns the filters with those inside them, at any depth. */
export function withInnerFilters(filters: readonly HttpFilter[]): HttpFilter[] {
  return filters.flatMap((filter) => [
    filter,
    ...withInnerFilters(innerFilters(filter.typed_config).map((inner) => inner.filter)),
  ]);
}

/** Returns the filters that an action of composite executes; none for another action. */
export function actionFilters(action: Any | undefined, path: Path): InnerFilter[] {
  const found: ExecuteFilterAction | undefined = unpack(
    action,
    'envoy.extensions.filters.http.composite.v3.ExecuteFilterAction',
  );
  if (found === undefined) return [];
  const { dynamic_config: dynamic, filter_chain: chain, filter_chain_name: named, typed_config: own } = found;
  if (chain !== undefined) return chainOf(chain, [...path, 'filter_chain']);
  if (named) return [];
  if (dynamic !== undefined) {
    const filter: HttpFilter = { ...dynamic };
    return [{ filter, path: [...path, 'dynamic_config'] }];
  }
  return single(own, [...path, 'typed_config']);
}

function chainOf({ typed_config: filters = [] }: FilterChainConfiguration, path: Path): InnerFilter[] {
  return filters.flatMap((filter, index) => single(filter, [...path, 'typed_config', index]));
}

function single(filter: TypedExtensionConfig | undefined, path: Path): InnerFilter[] {
  return filter === undefined ? [] : [{ filter: { ...filter }, path }];
}

/** Searches a matcher for actions. */
function matcherFilters(value: MatcherMatcher | undefined, path: Path): InnerFilter[] {
  const found: InnerFilter[] = [];
  walk(value, path, found);
  return found;
}

function walk(value: unknown, path: Path, found: InnerFilter[]): void {
  if (typeof value !== 'object' || value === null) return;
  const { '@type': type } = value as { readonly '@type'?: unknown };
  const filters = typeof type === 'string' ? actionFilters(value as Any, path) : [];
  found.push(...filters);
  // The filters inside the action's filters are theirs.
  if (filters.length > 0) return;
  for (const [name, inner] of Object.entries(value))
    walk(inner, [...path, Array.isArray(value) ? Number(name) : name], found);
}
