// Categories of extensions that stand in the same field of the API.

/** The category of upstream HTTP filters. */
export const UPSTREAM_FILTERS = 'envoy.filters.http.upstream';

const LISTENER_FILTERS: readonly string[] = ['envoy.filters.listener', 'envoy.filters.udp_listener'];

/** Upstream HTTP filters, which checkUpstreamFilters() restricts to those that can stand there. */
const UPSTREAM: readonly string[] = [UPSTREAM_FILTERS, 'envoy.filters.http'];

/**
 * Returns the categories that fit a field of this category; none without one. Filters of UDP listeners stand where those of TCP listeners do;
 * checkListenerFilters() checks that they fit the protocol.
 */
export function alternativeCategories(category: string | undefined): readonly string[] {
  if (category === 'envoy.filters.listener') return LISTENER_FILTERS;
  if (category === UPSTREAM_FILTERS) return UPSTREAM;
  return category === undefined ? [] : [category];
}
