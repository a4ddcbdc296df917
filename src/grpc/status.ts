// The status of a gRPC call.

import { grpcStatusIn, grpcStatusOf } from '../common/grpc-status.js';
import { headerKey } from '../common/text/header-names.js';
import type { HeaderBlock } from '../http/headers/header-block.js';

/** The codes that Baton itself sets (https://github.com/grpc/grpc/blob/master/doc/statuscodes.md). */
export const enum GrpcCode {
  Ok = 0,
  Cancelled = 1,
  Unknown = 2,
  DeadlineExceeded = 4,
  ResourceExhausted = 8,
  Internal = 13,
  Unavailable = 14,
}

export interface GrpcStatus {
  readonly code: number;
  /** For the log; '' if there are none. */
  readonly details: string;
}

const OK_HTTP = 200;
const GRPC_STATUS = headerKey('grpc-status');
const GRPC_MESSAGE = headerKey('grpc-message');

/** Returns the status in the trailers of a response, or in a head that ends it. */
export function statusIn(headers: HeaderBlock): GrpcStatus {
  const code = grpcStatusIn(headers, GRPC_STATUS);
  if (code === undefined) return { code: GrpcCode.Unknown, details: 'the server ended the stream without a status' };
  const details = percentDecoded(headers.get(GRPC_MESSAGE) ?? '');
  return { code: code < 0 ? GrpcCode.Unknown : code, details };
}

/**
 * Returns the status of a call that ends with the head of the response; undefined: messages follow. A grpc-status takes precedence
 * over the HTTP status (http-grpc-status-mapping.md).
 */
export function statusOfHead(headers: HeaderBlock, endStream: boolean): GrpcStatus | undefined {
  const { status } = headers;
  if (endStream && (status === OK_HTTP || headers.find(GRPC_STATUS) >= 0)) return statusIn(headers);
  if (status === OK_HTTP) return undefined;
  return { code: grpcStatusOf(status), details: `the server answered with HTTP status ${status}` };
}

/** Decodes a grpc-message, in which invalid escapes stay as they are (PROTOCOL-HTTP2.md). */
function percentDecoded(text: string): string {
  if (!text.includes('%')) return text;
  const plain = text.replace(/%([0-9a-f]{2})/gi, (_, digits: string) =>
    String.fromCharCode(Number.parseInt(digits, 16)),
  );
  return Buffer.from(plain, 'latin1').toString('utf8');
}
