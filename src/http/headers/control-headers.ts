// Takes from requests the headers by which only proxies and internal clients may speak to the proxy.

import { equalsFolded, FOLD, type HeaderKey, HeaderSet, headerKey, OTHER_HEADER } from '../../common/header-names.js';
import type { HeaderBlock } from './header-block.js';

/**
 * Takes what an external request may not say.
 * @param isEdge this is the first proxy, so that nobody but the client can have written the headers
 * @param internalOnly further names (RouteConfiguration.internal_only_headers)
 */
export function sanitizeExternal(headers: HeaderBlock, isEdge: boolean, internalOnly: readonly HeaderKey[]): void {
  for (let i = 0; i < ALWAYS_IDS.length; i++) headers.removeId(ALWAYS_IDS[i]!);
  if (headers.mayHaveOneOf(EXTERNAL_SET)) for (const id of EXTERNAL_IDS) headers.removeId(id);
  if (isEdge && headers.mayHaveOneOf(EDGE_SET)) for (const id of EDGE_IDS) headers.removeId(id);
  for (let i = 0; i < internalOnly.length; i++) headers.remove(internalOnly[i]!);
  if (headers.mayHave(OTHER_HEADER)) removeUnknown(headers, false, isEdge);
}

/** Takes what not even an internal request may say. */
export function sanitizeInternal(headers: HeaderBlock): void {
  for (let i = 0; i < ALWAYS_IDS.length; i++) headers.removeId(ALWAYS_IDS[i]!);
  if (headers.mayHave(OTHER_HEADER)) removeUnknown(headers, true, false);
}

/** Requests from outside must not steer retries, timeouts and traces. */
const EXTERNAL_LOSES = [
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
].map(headerKey);
/** … and at the first proxy they lose what only a proxy may say. */
const EDGE_LOSES = [
  'x-envoy-decorator-operation',
  'x-envoy-original-path',
  'x-envoy-downstream-service-cluster',
  'x-envoy-downstream-service-node',
].map(headerKey);

/** Client certificates are not forwarded (forward_client_cert_details SANITIZE): what a client claims of one is a lie. */
const ALL_LOSE = ['x-forwarded-client-cert'].map(headerKey);

// By number, and by name for those that have none.
const ALWAYS_IDS = knownIds(ALL_LOSE);
const ALWAYS_NAMES = unknownNames(ALL_LOSE);
const EXTERNAL_IDS = knownIds(EXTERNAL_LOSES);
const EDGE_IDS = knownIds(EDGE_LOSES);
const EXTERNAL_SET = new HeaderSet(EXTERNAL_LOSES);
const EDGE_SET = new HeaderSet(EDGE_LOSES);
const EXTERNAL_NAMES = unknownNames(EXTERNAL_LOSES);
const EDGE_NAMES = unknownNames(EDGE_LOSES);

const DASH = 45;
const LETTER_E = 101;
const LETTER_F = 102;
const LETTER_X = 120;

function knownIds(keys: readonly HeaderKey[]): readonly number[] {
  return keys.map((key) => key.id).filter((id) => id !== OTHER_HEADER);
}

function unknownNames(keys: readonly HeaderKey[]): readonly Uint8Array[] {
  return keys.filter((key) => key.id === OTHER_HEADER).map((key) => key.bytes);
}

/** Control headers without a number: one look at the first bytes sorts out all other fields. */
function removeUnknown(headers: HeaderBlock, isInternal: boolean, isEdge: boolean): void {
  const { bytes } = headers.memory;
  for (let index = 0, size = headers.size; index < size; index++) {
    if (headers.id(index) !== OTHER_HEADER) continue;
    const start = headers.nameStart(index);
    if (FOLD[bytes[start]!] !== LETTER_X || bytes[start + 1] !== DASH) continue;
    const third = FOLD[bytes[start + 2]!];
    if (third === LETTER_F) {
      if (isOneOf(headers, index, ALWAYS_NAMES)) headers.removeAt(index);
    } else if (third === LETTER_E && !isInternal) {
      if (isOneOf(headers, index, EXTERNAL_NAMES) || (isEdge && isOneOf(headers, index, EDGE_NAMES))) {
        headers.removeAt(index);
      }
    }
  }
}

function isOneOf(headers: HeaderBlock, index: number, names: readonly Uint8Array[]): boolean {
  const { bytes } = headers.memory;
  for (const name of names) {
    if (equalsFolded(bytes, headers.nameStart(index), headers.nameEnd(index), name)) return true;
  }
  return false;
}
