// The route configurations inside a listener's connection managers, which can change while everything else stays.

import { ownRoutes } from '../../../config/fields/own-routes.js';
import type { FilterChain, Listener } from '../../../config/generated/api.js';
import { replaced } from '../../../config/schema/sensitive.js';
import type { Path, PathPart } from '../../../config/text/path.js';

export interface InlineRoutes {
  readonly name: string;
  /** Path from the listener. */
  readonly path: Path;
}

/**
 * Returns the routes by place. A place is equal in two versions of a listener even if other filter chains were added or removed.
 */
export function inlineRoutes({ default_filter_chain, filter_chains = [] }: Listener): Map<string, InlineRoutes> {
  const found = new Map<string, InlineRoutes>();
  filter_chains.forEach((chain, index) => {
    collect(found, chain, chain.name || String(index), ['filter_chains', index]);
  });
  if (default_filter_chain !== undefined)
    collect(found, default_filter_chain, 'default_filter_chain', ['default_filter_chain']);
  return found;
}

/** Returns the listener without the values at these paths; the rest is shared with it. */
export function without(listener: Listener, paths: readonly Path[]): Listener {
  return replaced(
    listener,
    paths.map((path) => ({ path, shown: undefined })),
  );
}

function collect(
  found: Map<string, InlineRoutes>,
  { filters = [] }: FilterChain,
  place: string,
  path: readonly PathPart[],
): void {
  filters.forEach(({ typed_config }, index) => {
    const routes = ownRoutes(typed_config);
    if (routes === undefined) return;
    found.set(`${place}/${index}`, {
      name: routes.name ?? '',
      path: [...path, 'filters', index, 'typed_config', 'route_config'],
    });
  });
}
