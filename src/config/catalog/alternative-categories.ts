// Categories of extensions that the same field of the API accepts.

/** The category of upstream HTTP filters. */
export const UPSTREAM_FILTERS = 'envoy.filters.http.upstream';

const LISTENER_FILTERS: readonly string[] = ['envoy.filters.listener', 'envoy.filters.udp_listener'];

/** Upstream HTTP filters. checkUpstreamFilters() refuses HTTP filters that cannot be used there. */
const UPSTREAM: readonly string[] = [UPSTREAM_FILTERS, 'envoy.filters.http'];

const CUSTOM_RESPONSES = 'envoy.http.custom_response';
/** A matcher of responses has inputs, and policies as its actions. */
const MATCHED_RESPONSES: readonly string[] = [
  CUSTOM_RESPONSES,
  'envoy.matching.http.input',
  'envoy.matching.http.custom_matchers',
];

/**
 * Returns the categories that a field of this category accepts; none for undefined. Filters of UDP listeners are in the same field as
 * those of TCP listeners; checkListenerFilters() checks that they fit the protocol.
 */
export function alternativeCategories(category: string | undefined): readonly string[] {
  if (category === 'envoy.filters.listener') return LISTENER_FILTERS;
  if (category === UPSTREAM_FILTERS) return UPSTREAM;
  if (category === CUSTOM_RESPONSES) return MATCHED_RESPONSES;
  return category === undefined ? [] : [category];
}
