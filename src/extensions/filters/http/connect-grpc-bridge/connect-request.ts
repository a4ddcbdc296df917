// Recognizes a request of the Connect protocol, and turns its head into that of a gRPC request.

import { type HeaderBlock, type HeaderKey, headerKey, Method } from '../../../sdk.js';

const ACCEPT_ENCODING = headerKey('accept-encoding');
const CONNECT_ACCEPT_ENCODING = headerKey('connect-accept-encoding');
const CONNECT_CONTENT_ENCODING = headerKey('connect-content-encoding');
const CONTENT_ENCODING = headerKey('content-encoding');
const CONTENT_LENGTH = headerKey('content-length');
const CONTENT_TYPE = headerKey('content-type');
const GRPC_ACCEPT_ENCODING = headerKey('grpc-accept-encoding');
const GRPC_ENCODING = headerKey('grpc-encoding');
const GRPC_TIMEOUT = headerKey('grpc-timeout');
const PROTOCOL_VERSION = headerKey('connect-protocol-version');
const TE = headerKey('te');
const TIMEOUT = headerKey('connect-timeout-ms');

export interface ConnectRequest {
  readonly isStreaming: boolean;
  /** The message is compressed. */
  readonly isCompressed: boolean;
  /** The message of a GET request, which is in its query. */
  readonly message: Buffer | undefined;
}

/** Changes the head if it is one of the Connect protocol; undefined for others. */
export function toGrpcRequest(headers: HeaderBlock): ConnectRequest | undefined {
  if (headers.method === Method.Get) return fromQuery(headers);
  const [, stream, type] = /^application\/(connect\+)?(.+)$/.exec(headers.get(CONTENT_TYPE) ?? '') ?? [];
  if (type === undefined || type.startsWith('grpc')) return undefined;
  const isStreaming = stream !== undefined;
  if (!isStreaming && headers.find(PROTOCOL_VERSION) < 0) return undefined;
  move(headers, isStreaming ? CONNECT_CONTENT_ENCODING : CONTENT_ENCODING, GRPC_ENCODING);
  move(headers, isStreaming ? CONNECT_ACCEPT_ENCODING : ACCEPT_ENCODING, GRPC_ACCEPT_ENCODING);
  finish(headers, type);
  return { isStreaming, isCompressed: isCompressed(headers), message: undefined };
}

/** A call without side effects may be a GET: `?connect=v1&encoding=proto&message=…`. */
function fromQuery(headers: HeaderBlock): ConnectRequest | undefined {
  const [path = '', query] = splitAtFirst(headers.pathText(), '?');
  if (query === undefined) return undefined;
  const parameters = new URLSearchParams(query);
  const encoding = parameters.get('encoding');
  const message = parameters.get('message');
  if (parameters.get('connect') !== 'v1' || message === null || !/^[\w.+-]+$/.test(encoding ?? '')) return undefined;
  const compression = parameters.get('compression') ?? 'identity';
  if (!/^[\w-]+$/.test(compression)) return undefined;
  headers.setMethod(Method.Post, 'POST');
  headers.setPath(path);
  headers.set(GRPC_ENCODING, compression);
  move(headers, ACCEPT_ENCODING, GRPC_ACCEPT_ENCODING);
  finish(headers, encoding!);
  const bytes = Buffer.from(message, parameters.get('base64') === '1' ? 'base64url' : 'utf8');
  return { isStreaming: false, isCompressed: isCompressed(headers), message: bytes };
}

function finish(headers: HeaderBlock, type: string): void {
  headers.set(CONTENT_TYPE, `application/grpc+${type}`);
  headers.remove(CONTENT_LENGTH);
  headers.remove(PROTOCOL_VERSION);
  headers.set(TE, 'trailers');
  const timeout = headers.get(TIMEOUT);
  if (timeout === undefined || !/^[0-9]{1,8}$/.test(timeout)) return;
  headers.set(GRPC_TIMEOUT, `${timeout}m`);
  headers.remove(TIMEOUT);
}

function isCompressed(headers: HeaderBlock): boolean {
  return (headers.get(GRPC_ENCODING) ?? 'identity') !== 'identity';
}

/** Renames a field. */
export function move(headers: HeaderBlock, from: HeaderKey, to: HeaderKey): void {
  const value = headers.get(from);
  if (value === undefined) return;
  headers.remove(from);
  headers.set(to, value);
}

function splitAtFirst(text: string, separator: string): [string, string | undefined] {
  const at = text.indexOf(separator);
  return at < 0 ? [text, undefined] : [text.slice(0, at), text.slice(at + 1)];
}
