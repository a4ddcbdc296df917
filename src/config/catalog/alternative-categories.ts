// Categories of extensions that stand in the same field of the API.

const LISTENER_FILTERS: readonly string[] = ['envoy.filters.listener', 'envoy.filters.udp_listener'];

/**
 * Returns the categories that fit a field of this category; none without one. Filters of UDP listeners stand where those of TCP listeners do;
 * checkListenerFilters() checks that they fit the protocol.
 */
export function alternativeCategories(category: string | undefined): readonly string[] {
  if (category === 'envoy.filters.listener') return LISTENER_FILTERS;
  return category === undefined ? [] : [category];
}
