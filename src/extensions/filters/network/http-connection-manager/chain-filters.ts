// The HTTP filters of a connection manager's chain.

import { isLeftOut } from '../../../../config/fields/optional-filters.js';
import type { HttpConnectionManager, HttpFilter } from '../../../../config/generated/api.js';
import type { ExtensionFinder } from '../../../factories.js';

/** Returns the filters in order, without optional ones that this build does not have. */
export function chainFilters(config: HttpConnectionManager, extensions: ExtensionFinder): readonly HttpFilter[] {
  const filters = config.http_filters ?? [];
  const isMissing = (filter: HttpFilter) => isLeftOut(filter, (own) => extensions.hasHttpFilter(own));
  return filters.some(isMissing) ? filters.filter((filter) => !isMissing(filter)) : filters;
}
