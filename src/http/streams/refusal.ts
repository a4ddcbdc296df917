// The answer to an unreadable or missing request. The codec sends it, bypassing filters and edge rules; local_reply_config applies to it as
// to other local replies.

import type { StreamInfo } from '../../access-log/stream/stream-info.js';
import { NoRoomError } from '../../io/memory.js';
import type { CodecError } from '../codec/streams.js';
import type { HeaderBlock } from '../headers/header-block.js';
import type { ManagerContext } from '../manager-context.js';

/** Returns the answer for `error`, which is `error` itself without local_reply_config. `info` must have its flags and details. */
export function refusalFor(error: CodecError, info: StreamInfo, { options, thread }: ManagerContext): CodecError {
  const { localReplies } = options;
  if (localReplies === undefined) return error;
  const { clock, headerBlocks } = thread;
  const headers = headerBlocks.take();
  try {
    headers.setStatus(error.status);
    info.durationMs = clock.monotonicMs - info.startMonotonicMs;
    const body = localReplies.rewrite(headers, info, error.body ?? '', false);
    const text = typeof body === 'string' ? body : Buffer.from(body).toString('latin1');
    return { status: headers.status, detail: error.detail, body: text, fields: linesOf(headers) };
  } catch (thrown) {
    if (!(thrown instanceof NoRoomError)) throw thrown;
    info.responseHeaders = undefined;
    return error;
  } finally {
    // Access logs can read the head until this turn ends.
    headers.drop();
  }
}

function linesOf(headers: HeaderBlock): string {
  let lines = '';
  for (let index = 0; index < headers.size; index++) {
    if (!headers.isRemoved(index)) lines += `${headers.name(index)}: ${headers.value(index)}\r\n`;
  }
  return lines;
}
