// Takes from requests the headers by which only proxies and internal clients may speak to the proxy.

import {
  type HeaderKey,
  HeaderSet,
  headerKey,
  type KnownHeader,
  knownHeader,
} from '../../../common/text/header-names.js';
import type { HeaderBlock } from '../header-block.js';

/**
 * Takes what an external request may not say.
 * @param isEdge this is the first proxy, so that nobody but the client can have written the headers
 * @param internalOnly further names (RouteConfiguration.internal_only_headers)
 */
export function sanitizeExternal(headers: HeaderBlock, isEdge: boolean, internalOnly: readonly HeaderKey[]): void {
  headers.removeId(CLIENT_CERTIFICATE);
  if (headers.mayHaveOneOf(EXTERNAL_SET)) for (const { id } of EXTERNAL_LOSES) headers.removeId(id);
  if (isEdge && headers.mayHaveOneOf(EDGE_SET)) for (const { id } of EDGE_LOSES) headers.removeId(id);
  for (let i = 0; i < internalOnly.length; i++) headers.remove(internalOnly[i]!);
}

/** Takes what not even an internal request may say. */
export function sanitizeInternal(headers: HeaderBlock): void {
  headers.removeId(CLIENT_CERTIFICATE);
}

/** Requests from outside must not steer retries, timeouts and traces. */
const EXTERNAL_LOSES = knownKeys([
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
  'x-envoy-is-timeout-retry',
]);
/** … and at the first proxy they lose what only a proxy may say. */
const EDGE_LOSES = knownKeys([
  'x-envoy-decorator-operation',
  'x-envoy-original-host',
  'x-envoy-original-path',
  'x-envoy-downstream-service-cluster',
  'x-envoy-downstream-service-node',
]);

/** Client certificates are not forwarded (forward_client_cert_details SANITIZE): what a client claims of one is a lie. */
const CLIENT_CERTIFICATE = knownHeader('x-forwarded-client-cert');

const EXTERNAL_SET = new HeaderSet(EXTERNAL_LOSES);
const EDGE_SET = new HeaderSet(EDGE_LOSES);

/** A look at the head's presence bits is enough for names that have a number. */
function knownKeys(names: readonly KnownHeader[]): readonly HeaderKey[] {
  return names.map(headerKey);
}
