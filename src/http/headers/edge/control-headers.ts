// Removes request headers that only proxies and internal clients may send.

import { type HeaderKey, HeaderSet, headerKey, type KnownHeader } from '../../../common/text/header-names.js';
import type { HeaderBlock } from '../header-block.js';

/**
 * Removes the headers that an external request may not have.
 * @param isEdge this is the first proxy, so only the client can have sent the headers
 * @param internalOnly further names (RouteConfiguration.internal_only_headers)
 */
export function sanitizeExternal(headers: HeaderBlock, isEdge: boolean, internalOnly: readonly HeaderKey[]): void {
  if (headers.mayHaveOneOf(EXTERNAL_SET)) for (const { id } of REMOVED_FROM_EXTERNAL) headers.removeId(id);
  if (isEdge && headers.mayHaveOneOf(EDGE_SET)) for (const { id } of REMOVED_AT_EDGE) headers.removeId(id);
  for (let i = 0; i < internalOnly.length; i++) headers.remove(internalOnly[i]!);
}

/** External requests must not control retries, timeouts and traces. */
const REMOVED_FROM_EXTERNAL = knownKeys([
  'x-envoy-retriable-status-codes',
  'x-envoy-retriable-header-names',
  'x-envoy-retry-on',
  'x-envoy-retry-grpc-on',
  'x-envoy-max-retries',
  'x-envoy-upstream-alt-stat-name',
  'x-envoy-upstream-rq-timeout-ms',
  'x-envoy-upstream-rq-per-try-timeout-ms',
  'x-envoy-upstream-rq-timeout-alt-response',
  'x-envoy-upstream-stream-duration-ms',
  'x-envoy-expected-rq-timeout-ms',
  'x-envoy-force-trace',
  'x-envoy-ip-tags',
  'x-envoy-original-url',
  'x-envoy-hedge-on-per-try-timeout',
]);
/** Headers that only a proxy may send: also removed by the first proxy. */
const REMOVED_AT_EDGE = knownKeys([
  'x-envoy-decorator-operation',
  'x-envoy-original-host',
  'x-envoy-original-path',
  'x-envoy-downstream-service-cluster',
  'x-envoy-downstream-service-node',
]);

const EXTERNAL_SET = new HeaderSet(REMOVED_FROM_EXTERNAL);
const EDGE_SET = new HeaderSet(REMOVED_AT_EDGE);

/** All names are known headers, for which the head's presence bits suffice. */
function knownKeys(names: readonly KnownHeader[]): readonly HeaderKey[] {
  return names.map(headerKey);
}
