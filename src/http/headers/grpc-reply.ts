// Local replies to gRPC requests. gRPC clients read grpc-status instead of the HTTP status, so the reply is a head with grpc-status and no
// body.

import { grpcStatusOf } from '../../common/grpc-status.js';
import { headerKey } from '../../common/text/header-names.js';
import type { HeaderBlock } from './header-block.js';

const CONTENT_LENGTH = headerKey('content-length');
const CONTENT_TYPE = headerKey('content-type');
const GRPC_STATUS = headerKey('grpc-status');
const GRPC_MESSAGE = headerKey('grpc-message');

const TYPE = Buffer.from('application/grpc');
const PLUS = 43;

/**
 * Returns whether a request or a response is gRPC: its content type is application/grpc, possibly with a suffix (application/grpc+proto).
 */
export function isGrpcRequest(headers: HeaderBlock): boolean {
  // Most messages have another type: they need no search for a second field.
  const first = headers.findId(CONTENT_TYPE.id);
  if (first < 0) return false;
  const isEmpty = headers.valueStart(first) === headers.valueEnd(first);
  return (isEmpty || isGrpcType(headers, first)) && isGrpcType(headers, headers.findValue(CONTENT_TYPE));
}

/**
 * Returns whether a response is gRPC. One that ends with its head needs just a grpc-status, any other one the status 200 and the content
 * type.
 */
export function isGrpcResponse(headers: HeaderBlock, endStream: boolean): boolean {
  if (endStream) return headers.find(GRPC_STATUS) >= 0;
  return headers.status === 200 && isGrpcRequest(headers);
}

function isGrpcType(headers: HeaderBlock, index: number): boolean {
  const start = headers.valueStart(index);
  const length = headers.valueEnd(index) - start;
  const { bytes } = headers.memory;
  if (length < TYPE.length || (length > TYPE.length && bytes[start + TYPE.length] !== PLUS)) return false;
  // From the end, where other types differ.
  for (let at = TYPE.length - 1; at >= 0; at--) if (bytes[start + at] !== TYPE[at]) return false;
  return true;
}

/**
 * Converts the head of a local reply to gRPC. `body` becomes the grpc-message if `hasMessage`. `grpcStatus`: undefined derives it from the
 * HTTP status.
 */
export function makeGrpcReply(
  headers: HeaderBlock,
  body: string | Uint8Array,
  hasMessage: boolean,
  grpcStatus: number | undefined,
): void {
  const { status } = headers;
  headers.setStatus(200);
  headers.remove(CONTENT_LENGTH);
  headers.set(CONTENT_TYPE, 'application/grpc');
  if (headers.find(GRPC_STATUS) < 0) headers.add(GRPC_STATUS, String(grpcStatus ?? grpcStatusOf(status)));
  if (hasMessage && body.length > 0) headers.set(GRPC_MESSAGE, grpcMessage(Buffer.from(body)));
}

/** Returns bytes as a grpc-message, which has all others than plain ones as %XX. */
export function grpcMessage(bytes: Uint8Array): string {
  let text = '';
  for (const byte of bytes) {
    const isPlain = byte >= 0x20 && byte < 0x7e && byte !== 0x25;
    text += isPlain ? String.fromCharCode(byte) : `%${byte.toString(16).toUpperCase().padStart(2, '0')}`;
  }
  return text;
}
