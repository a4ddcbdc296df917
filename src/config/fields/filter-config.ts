// What a route says to a filter (typed_per_filter_config): a message of the filter's, or one in a wrapper that can switch the filter on or off there.

import type { Any } from '../generated/api.js';
import { unpack } from '../schema/any.js';
import { FILTER_CONFIG } from '../schema/message-name.js';

export interface RouteFilterConfig {
  readonly isDisabled: boolean;
  /** The filter's own message; undefined: the filter runs, and is told nothing. */
  readonly config: Any | undefined;
  /** Where that stands, from the entry on. */
  readonly path: readonly [] | readonly ['config'];
}

export function routeFilterConfig(entry: Any): RouteFilterConfig {
  const wrapper = unpack(entry, FILTER_CONFIG);
  if (wrapper === undefined) return { isDisabled: false, config: entry, path: [] };
  // An empty one has no type.
  const isEmpty = (wrapper.config as Partial<Any> | undefined)?.['@type'] === undefined;
  return { isDisabled: wrapper.disabled ?? false, config: isEmpty ? undefined : wrapper.config, path: ['config'] };
}
