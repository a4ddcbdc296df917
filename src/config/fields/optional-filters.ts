// HttpFilter.is_optional: a filter that this build does not have is left out of its chain.

import type { Any, HttpFilter } from '../generated/api.js';

/**
 * Returns whether an HTTP filter is optional and missing. Its configuration is not known then. A filter that this build has must be valid,
 * as in Envoy. `has`: whether this build has the HTTP filter that a message configures.
 */
export function isLeftOut(filter: HttpFilter, has: (config: Any) => boolean): boolean {
  if (filter.is_optional !== true || filter.config_discovery !== undefined) return false;
  // The name of a known filter alone has become its typed_config.
  return filter.typed_config === undefined || !has(filter.typed_config);
}
