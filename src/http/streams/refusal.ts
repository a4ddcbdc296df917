// What a client is told whose request cannot be read, or does not come. Its codec answers, past filters and edge rules; the connection
// manager's local_reply_config holds for it as for other answers of Baton's own.

import type { StreamInfo } from '../../access-log/stream/stream-info.js';
import { NoRoomError } from '../../io/memory.js';
import type { CodecError } from '../codec/streams.js';
import type { HeaderBlock } from '../headers/header-block.js';
import type { ManagerContext } from '../manager-context.js';

/** The answer in place of `error`, whose flags and details `info` has already; `error` itself without local_reply_config. */
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
    // What logs read of it is there until this turn of the connection ends.
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
