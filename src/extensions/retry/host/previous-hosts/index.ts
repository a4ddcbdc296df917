// envoy.retry_host_predicates.previous_hosts: another try prefers a host that the request has not been at. Policies read that it is
// there (http/routing/retries/retry-policy.ts), and the router obeys it.

import type { RetryHostPredicateExtension } from '../../../sdk.js';

const TYPE = 'envoy.extensions.retry.host.previous_hosts.v3.PreviousHostsPredicate';

export const previousHosts: RetryHostPredicateExtension = {
  category: 'envoy.retry_host_predicates',
  name: 'envoy.retry_host_predicates.previous_hosts',
  typeUrls: [`type.googleapis.com/${TYPE}`],
  implemented: { [TYPE]: {} },
};
