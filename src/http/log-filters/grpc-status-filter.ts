// grpc_status_filter: that of the trailers, else of the head of the response, else what its status of HTTP is in gRPC.

import type { HeaderView } from '../../access-log/stream/header-view.js';
import type { StreamInfo } from '../../access-log/stream/stream-info.js';
import { headerKey } from '../../common/text/header-names.js';
import type { GrpcStatusFilter as GrpcStatusConfig } from '../../config/generated/api.js';
import { grpcStatusOf } from '../headers/grpc-reply.js';
import type { LogFilter } from './log-filter.js';

const GRPC_STATUS = headerKey('grpc-status');

/** The API's names, by number. */
const STATUSES = [
  ...['OK', 'CANCELED', 'UNKNOWN', 'INVALID_ARGUMENT', 'DEADLINE_EXCEEDED', 'NOT_FOUND', 'ALREADY_EXISTS'],
  ...['PERMISSION_DENIED', 'RESOURCE_EXHAUSTED', 'FAILED_PRECONDITION', 'ABORTED', 'OUT_OF_RANGE', 'UNIMPLEMENTED'],
  ...['INTERNAL', 'UNAVAILABLE', 'DATA_LOSS', 'UNAUTHENTICATED'],
];
const UNKNOWN = 2;
/** What a peer sends that is none. */
const INVALID = -1;
/** No number above the last of them is one, however many digits it has. */
const MOST_DIGITS = 9;

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

/** Undefined: it says none. */
function statusIn(head: HeaderView | undefined): number | undefined {
  const index = head === undefined ? -1 : head.findValue(GRPC_STATUS);
  if (index < 0) return undefined;
  const start = head!.valueStart(index);
  const end = head!.valueEnd(index);
  if (start === end) return undefined;
  if (end - start > MOST_DIGITS) return INVALID;
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
