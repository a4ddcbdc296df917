// grpc_status_filter: uses the grpc-status of the response trailers, else of the response head, else the equivalent of the HTTP status.

import type { HeaderView } from '../../access-log/stream/header-view.js';
import type { StreamInfo } from '../../access-log/stream/stream-info.js';
import { grpcStatusIn, impliedGrpcStatus } from '../../common/grpc-status.js';
import { headerKey } from '../../common/text/header-names.js';
import type { GrpcStatusFilter as GrpcStatusConfig } from '../../config/generated/api.js';
import type { LogFilter } from './log-filter.js';

const GRPC_STATUS = headerKey('grpc-status');

/** The API's names, indexed by grpc-status. */
const STATUSES = [
  ...['OK', 'CANCELED', 'UNKNOWN', 'INVALID_ARGUMENT', 'DEADLINE_EXCEEDED', 'NOT_FOUND', 'ALREADY_EXISTS'],
  ...['PERMISSION_DENIED', 'RESOURCE_EXHAUSTED', 'FAILED_PRECONDITION', 'ABORTED', 'OUT_OF_RANGE', 'UNIMPLEMENTED'],
  ...['INTERNAL', 'UNAVAILABLE', 'DATA_LOSS', 'UNAUTHENTICATED'],
];

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
    const status =
      statusIn(info.responseTrailers) ?? statusIn(info.responseHeaders) ?? impliedGrpcStatus(info.responseCode);
    return this.#statuses.has(status) !== this.#excludes;
  }
}

function statusIn(head: HeaderView | undefined): number | undefined {
  return head === undefined ? undefined : grpcStatusIn(head, GRPC_STATUS);
}
