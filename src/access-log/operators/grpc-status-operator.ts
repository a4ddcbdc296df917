// %GRPC_STATUS(FORM)% and %GRPC_STATUS_NUMBER%: the status of a gRPC call.

import { grpcStatusIn, impliedGrpcStatus } from '../../common/grpc-status.js';
import { headerKey } from '../../common/text/header-names.js';
import type { LogBuffer } from '../log-buffer.js';
import type { HeaderView } from '../stream/header-view.js';
import type { StreamInfo } from '../stream/stream-info.js';
import { operatorError } from './format-error.js';
import type { HeaderNeeds, Operator } from './operator.js';

const GRPC_STATUS = headerKey('grpc-status');
const CONTENT_TYPE = headerKey('content-type');
const TYPE = new TextEncoder().encode('application/grpc');
const PLUS = 43;

const SNAKE = [
  ...['OK', 'CANCELLED', 'UNKNOWN', 'INVALID_ARGUMENT', 'DEADLINE_EXCEEDED', 'NOT_FOUND', 'ALREADY_EXISTS'],
  ...['PERMISSION_DENIED', 'RESOURCE_EXHAUSTED', 'FAILED_PRECONDITION', 'ABORTED', 'OUT_OF_RANGE', 'UNIMPLEMENTED'],
  ...['INTERNAL', 'UNAVAILABLE', 'DATA_LOSS', 'UNAUTHENTICATED'],
];
const CAMEL = [
  ...['OK', 'Canceled', 'Unknown', 'InvalidArgument', 'DeadlineExceeded', 'NotFound', 'AlreadyExists'],
  ...['PermissionDenied', 'ResourceExhausted', 'FailedPrecondition', 'Aborted', 'OutOfRange', 'Unimplemented'],
  ...['Internal', 'Unavailable', 'DataLoss', 'Unauthenticated'],
];

/** `form`: CAMEL_STRING, SNAKE_STRING, NUMBER or ''. Throws a BatonError for others. */
export function grpcStatusOperator(form: string, needs: HeaderNeeds): Operator {
  if (!['', 'CAMEL_STRING', 'SNAKE_STRING', 'NUMBER'].includes(form))
    throw operatorError(`operator %GRPC_STATUS% takes CAMEL_STRING, SNAKE_STRING or NUMBER, not '${form}'`);
  needs.request.add(CONTENT_TYPE.name);
  needs.response.add(GRPC_STATUS.name);
  needs.trailers.add(GRPC_STATUS.name);
  return new GrpcStatusOperator(form === 'NUMBER' ? undefined : form === 'SNAKE_STRING' ? SNAKE : CAMEL);
}

class GrpcStatusOperator implements Operator {
  readonly isNumber: boolean;
  readonly #names: readonly string[] | undefined;

  /** `names`: undefined for the number. */
  constructor(names: readonly string[] | undefined) {
    this.isNumber = names === undefined;
    this.#names = names;
  }

  write(info: StreamInfo, out: LogBuffer): boolean {
    if (info.requestHeaders === undefined || !isGrpc(info.requestHeaders)) return false;
    const status =
      statusIn(info.responseTrailers) ?? statusIn(info.responseHeaders) ?? impliedGrpcStatus(info.responseCode);
    out.text(this.#names?.[status] ?? String(status));
    return true;
  }
}

function statusIn(view: HeaderView | undefined): number | undefined {
  return view === undefined ? undefined : grpcStatusIn(view, GRPC_STATUS);
}

function isGrpc(view: HeaderView): boolean {
  const index = view.find(CONTENT_TYPE);
  if (index < 0) return false;
  const start = view.valueStart(index);
  const length = view.valueEnd(index) - start;
  const { bytes } = view.memory;
  if (length < TYPE.length || (length > TYPE.length && bytes[start + TYPE.length] !== PLUS)) return false;
  for (let at = 0; at < TYPE.length; at++) if (bytes[start + at] !== TYPE[at]) return false;
  return true;
}
