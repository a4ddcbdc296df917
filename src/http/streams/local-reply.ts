// A local reply as its client gets it: the head of a response of its own, and the text that it says as the body. Whether a
// request may still be answered, and what then becomes of the response that it had, is its stream's to say.

import { headerKey } from '../../common/text/header-names.js';
import type { Memory } from '../../io/memory.js';
import type { LocalReply, ResponseStream } from '../filters/filter.js';
import { makeGrpcReply } from '../headers/grpc-reply.js';
import { type HeaderBlock, Method } from '../headers/header-block.js';
import type { ManagerContext } from '../manager-context.js';
import { RouteKind } from '../routing/actions/route.js';

const CONTENT_LENGTH = headerKey('content-length');
const CONTENT_TYPE = headerKey('content-type');
const PIECE = 32 * 1024;

/** The stream of the request that is answered. */
export interface AnsweredStream extends Pick<ResponseStream, 'encodeHeaders' | 'encodeData' | 'info' | 'route'> {
  readonly manager: ManagerContext;
  readonly requestHeaders: HeaderBlock;
}

/** Gives the whole reply to its stream, as a host's response would come; `asksByGrpc`: in the form that gRPC's clients look at. */
export function encodeReply(stream: AnsweredStream, reply: LocalReply, asksByGrpc: boolean): void {
  const { status, editHeaders, isVerbatim = false } = reply;
  const { info, route } = stream;
  const { options, thread } = stream.manager;
  const { clock, headerBlocks, memory } = thread;
  let body = asBytes(reply.body);
  const isHead = stream.requestHeaders.method === Method.Head;
  const isGrpc = asksByGrpc && !isVerbatim;
  const headers = headerBlocks.take();
  try {
    headers.setStatus(status);
    // Whoever gives it stands in for a host. Redirects and direct responses are the route's own, and make its changes themselves.
    if (!isVerbatim && route?.kind === RouteKind.Forward) route.finalizeResponse(headers, info);
    editHeaders?.(headers);
    if (!isVerbatim && options.localReplies !== undefined) {
      info.durationMs = clock.monotonicMs - info.startMonotonicMs;
      body = options.localReplies.rewrite(headers, info, body, isGrpc);
    }
    const hasBody = body.length > 0 && !isHead && !isGrpc;
    // What local_reply_config makes another status means that.
    if (isGrpc) makeGrpcReply(headers, body, !isHead, headers.status === status ? reply.grpcStatus : undefined);
    else if (body.length > 0) {
      // Its editor may have said another length, such as that of a response that it gives again.
      headers.set(CONTENT_LENGTH, String(body.length));
      // The route may know better what it is.
      if (headers.findId(CONTENT_TYPE.id) < 0) headers.add(CONTENT_TYPE, 'text/plain');
    } else headers.removeId(CONTENT_TYPE.id);
    stream.encodeHeaders(headers, !hasBody);
    if (hasBody) encodeBody(stream, body, memory);
  } finally {
    headers.drop();
  }
}

/** One character of what stays a string is one byte. */
function asBytes(body: string | Uint8Array): string | Uint8Array {
  return typeof body === 'string' && /[^\0-\x7f]/.test(body) ? Buffer.from(body) : body;
}

/** In pieces that fit into scratch, whatever the size. */
function encodeBody(stream: AnsweredStream, body: string | Uint8Array, memory: Memory): void {
  for (let from = 0; from < body.length; from += PIECE) {
    const length = Math.min(PIECE, body.length - from);
    const start = memory.scratch(length);
    if (typeof body === 'string') memory.write(start, body.slice(from, from + length));
    else memory.bytes.set(body.subarray(from, from + length), start);
    stream.encodeData(start, length, from + length === body.length);
  }
}
