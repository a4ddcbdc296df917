// Encodes a local reply as a response with a head and a body. The stream decides whether a request may still get one, and handles a
// response that has begun.

import { headerKey } from '../../common/text/header-names.js';
import type { LocalReply, ResponseStream } from '../filters/filter.js';
import { makeGrpcReply } from '../headers/grpc-reply.js';
import { type HeaderBlock, Method } from '../headers/header-block.js';
import type { ManagerContext } from '../manager-context.js';
import { RouteKind } from '../routing/actions/route.js';

const CONTENT_LENGTH = headerKey('content-length');
const CONTENT_TYPE = headerKey('content-type');

/** The stream of the answered request. */
export interface AnsweredStream extends Pick<ResponseStream, 'encodeHeaders' | 'info' | 'route'> {
  readonly manager: ManagerContext;
  readonly requestHeaders: HeaderBlock;
  /** Sends the body after the head. Each character of a string is one byte. */
  encodeReplyBody(body: string | Uint8Array): void;
}

/** Passes the whole reply to its stream like a host's response. `asksByGrpc`: in gRPC form. */
export function encodeReply(stream: AnsweredStream, reply: LocalReply, asksByGrpc: boolean): void {
  const { status, editHeaders, isCopy = false, isVerbatim = false } = reply;
  const { info, route } = stream;
  const { options, thread } = stream.manager;
  const { clock, headerBlocks } = thread;
  let body = asBytes(reply.body);
  const isHead = stream.requestHeaders.method === Method.Head;
  const isGrpc = asksByGrpc && !isVerbatim;
  const headers = headerBlocks.take();
  try {
    headers.setStatus(status);
    // The reply replaces a host's response. Redirects and direct responses apply the route's changes themselves.
    if (!isVerbatim && route?.kind === RouteKind.Forward) route.finalizeResponse(headers, info);
    editHeaders?.(headers);
    if (!isVerbatim && options.localReplies !== undefined) {
      info.durationMs = clock.monotonicMs - info.startMonotonicMs;
      body = options.localReplies.rewrite(headers, info, body, isGrpc);
    }
    const hasBody = body.length > 0 && !isHead && !isGrpc;
    // If local_reply_config has changed the status, grpc-status follows from the new one.
    if (isGrpc) makeGrpcReply(headers, body, !isHead, headers.status === status ? reply.grpcStatus : undefined);
    else if (body.length > 0) {
      // editHeaders may have set another length, such as that of a copied response.
      headers.set(CONTENT_LENGTH, String(body.length));
      // The route may have set the content type.
      if (!isCopy && headers.findId(CONTENT_TYPE.id) < 0) headers.add(CONTENT_TYPE, 'text/plain');
    } else if (!isCopy) headers.removeId(CONTENT_TYPE.id);
    stream.encodeHeaders(headers, !hasBody);
    if (hasBody) stream.encodeReplyBody(body);
  } finally {
    headers.drop();
  }
}

/** Converts text to UTF-8 unless it is ASCII, so that one character of a string is one byte. */
function asBytes(body: string | Uint8Array): string | Uint8Array {
  return typeof body === 'string' && /[^\0-\x7f]/.test(body) ? Buffer.from(body) : body;
}
