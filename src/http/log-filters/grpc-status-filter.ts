// grpc_status_filter: uses the grpc-status of the response trailers, else of the response head, else the equivalent of the HTTP status.

import type { HeaderView } from '../../access-log/stream/header-view.js';
import type { StreamInfo } from '../../access-log/stream/stream-info.js';
import { headerKey } from '../../common/text/header-names.js';
import type { GrpcStatusFilter as GrpcStatusConfig } from '../../config/generated/api.js';
import { grpcStatusOf } from '../headers/grpc-reply.js';
import type { LogFilter } from './log-filter.js';

const GRPC_STATUS = headerKey('grpc-status');

/** The API's names, indexed by grpc-status. */
const STATUSES = [
  ...['OK', 'CANCELED', 'UNKNOWN', 'INVALID_ARGUMENT', 'DEADLINE_EXCEEDED', 'NOT_FOUND', 'ALREADY_EXISTS'],
  ...['PERMISSION_DENIED', 'RESOURCE_EXHAUSTED', 'FAILED_PRECONDITION', 'ABORTED', 'OUT_OF_RANGE', 'UNIMPLEMENTED'],
  ...['INTERNAL', 'UNAVAILABLE', 'DATA_LOSS', 'UNAUTHENTICATED'],
];
const UNKNOWN = 2;
/** A received value that is not a valid grpc-status. */
const INVALID = -1;
/** Longer values are invalid anyway. */
const MAX_DIGITS = 9;

export class GrpcStatusFilter implements LogFilter {
  readonly needs = {
    request: new Set<string>(),
    response: new Set(['grpc-status']),
    trailers: new Set(['grpc-status']),
  };
  readonly #statuses: ReadonlySet<number>;
  readonly #excludes: boolean;

  constructor({ statuses = [], exclude = false }: GrpcStatusConfig) {
    this.#statuses = new Set(statuses.map((name) => STATUSES.indexOf(name)));
    this.#excludes = exclude;
  }

  matches(info: StreamInfo): boolean {
    const status = statusIn(info.responseTrailers) ?? statusIn(info.responseHeaders) ?? inferred(info);
    return this.#statuses.has(status) !== this.#excludes;
  }
}

/** Returns undefined if the head has no grpc-status. */
function statusIn(head: HeaderView | undefined): number | undefined {
  const index = head === undefined ? -1 : head.findValue(GRPC_STATUS);
  if (index < 0) return undefined;
  const start = head!.valueStart(index);
  const end = head!.valueEnd(index);
  if (start === end) return undefined;
  if (end - start > MAX_DIGITS) return INVALID;
  const { bytes } = head!.memory;
  let number = 0;
  for (let at = start; at < end; at++) {
    const digit = bytes[at]! - 48;
    if (digit < 0 || digit > 9) return INVALID;
    number = number * 10 + digit;
  }
  return number < STATUSES.length ? number : INVALID;
}

function inferred({ responseCode }: StreamInfo): number {
  return responseCode === 0 ? UNKNOWN : grpcStatusOf(responseCode);
}
