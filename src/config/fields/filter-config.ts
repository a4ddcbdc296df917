// Per-route filter configurations (typed_per_filter_config): a message of the filter, optionally in a wrapper that can enable
// or disable the filter.

import type { Any } from '../generated/api.js';
import { unpack } from '../schema/any.js';
import { FILTER_CONFIG } from '../schema/message-name.js';

export interface RouteFilterConfig {
  readonly isDisabled: boolean;
  /** The filter's own message; undefined: the filter runs without per-route settings. */
  readonly config: Any | undefined;
  /** Path of the message, relative to the entry. */
  readonly path: readonly [] | readonly ['config'];
}

export function routeFilterConfig(entry: Any): RouteFilterConfig {
  const wrapper = unpack(entry, FILTER_CONFIG);
  if (wrapper === undefined) return { isDisabled: false, config: entry, path: [] };
  // An empty message has no type.
  const isEmpty = (wrapper.config as Partial<Any> | undefined)?.['@type'] === undefined;
  return { isDisabled: wrapper.disabled ?? false, config: isEmpty ? undefined : wrapper.config, path: ['config'] };
}
