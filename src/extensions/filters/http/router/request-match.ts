// The metadata that the host of a request must have, in a cluster with subsets.

import type { StreamInfo } from '../../../../access-log/stream/stream-info.js';
import { LB_NAMESPACE, MetadataMatch } from '../../../../http/routing/actions/metadata-match.js';

/** Merges dynamic metadata of the client's connection, and then that of the request, into the fields of the route. */
export function requestMatch(
  ofRoute: MetadataMatch | undefined,
  { downstream, dynamicMetadata }: Pick<StreamInfo, 'downstream' | 'dynamicMetadata'>,
): MetadataMatch | undefined {
  let match = ofRoute;
  for (const metadata of [downstream?.dynamicMetadata, dynamicMetadata]) {
    const fields = metadata?.get(LB_NAMESPACE);
    if (fields !== undefined) match = match === undefined ? MetadataMatch.from(fields) : match.merge(fields);
  }
  return match;
}
