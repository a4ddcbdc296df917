// Sends heads as ranges. Adjacent received lines are one range, and an unchanged head is a single range.

import type { StreamBytes } from '../../access-log/stream/stream-bytes.js';
import { ConnectionHeader } from '../../common/text/header-names.js';
import type { ByteSink } from '../codec/streams.js';
import type { HeaderBlock } from '../headers/header-block.js';
import type { Line } from './lines.js';
import type { H1Shared } from './shared.js';

/** Bits of header names that are omitted. */
export const SKIP_CONNECTION =
  (1 << ConnectionHeader.Connection) | (1 << ConnectionHeader.KeepAlive) | (1 << ConnectionHeader.ProxyConnection);
export const SKIP_LENGTH = 1 << ConnectionHeader.ContentLength;
export const SKIP_CODING = 1 << ConnectionHeader.TransferEncoding;

/** Sends the request line of `head`, as received if it is unchanged, then fields and tail. Counts the bytes in `bytes`. */
export function sendRequestHead(
  sink: ByteSink,
  shared: H1Shared,
  head: HeaderBlock,
  skip: number,
  tail: number,
  bytes: StreamBytes,
): void {
  if (head.startLineEnd > head.startLineStart) {
    sendFields(sink, head, head.startLineStart, head.startLineEnd, skip, shared.lines.tails[tail]!, tail, bytes);
    return;
  }
  const { memory } = shared;
  const target = memory.bytes;
  const methodLength = head.methodEnd - head.methodStart;
  const pathLength = head.pathEnd - head.pathStart;
  const start = memory.scratch(methodLength + pathLength + VERSION_BEHIND_PATH.length + 1);
  memory.copy(start, head.methodStart, head.methodEnd);
  let at = start + methodLength;
  target[at++] = 32;
  memory.copy(at, head.pathStart, head.pathEnd);
  at += pathLength;
  for (let i = 0; i < VERSION_BEHIND_PATH.length; i++) target[at++] = VERSION_BEHIND_PATH[i]!;
  sendFields(sink, head, start, at, skip, shared.lines.tails[tail]!, tail, bytes);
}

/** Sends the status line of `head`, as received if it is unchanged and the client speaks HTTP/1.1, then fields and tail. */
export function sendResponseHead(
  sink: ByteSink,
  shared: H1Shared,
  head: HeaderBlock,
  minorVersion: number,
  skip: number,
  tail: number,
  bytes: StreamBytes,
): void {
  const end = shared.lines.tails[tail]!;
  if (head.startLineEnd > head.startLineStart && minorVersion === 1) {
    sendFields(sink, head, head.startLineStart, head.startLineEnd, skip, end, tail, bytes);
    return;
  }
  const line = shared.lines.statusLine(head.status, minorVersion);
  sendFields(sink, head, line.start, line.start + line.length, skip, end, tail, bytes);
}

/** Sends the chunk of size 0 and the trailer fields. */
export function sendTrailers(sink: ByteSink, shared: H1Shared, trailers: HeaderBlock, bytes: StreamBytes): void {
  const { zeroChunk, tails } = shared.lines;
  const end = zeroChunk.start + zeroChunk.length;
  sendFields(sink, trailers, zeroChunk.start, end, SKIP_IN_TRAILERS, tails[0]!, 0, bytes);
}

/** Sends [start, end), the fields of `head` without the names in `skip`, and `tailLine`. */
function sendFields(
  sink: ByteSink,
  head: HeaderBlock,
  start: number,
  end: number,
  skip: number,
  tailLine: Line,
  tail: number,
  bytes: StreamBytes,
): void {
  const size = head.size;
  const startLine = end - start;
  let sent = 0;
  // If the head has none of the names, the loop need not check for them.
  if (!head.mayHaveAny(skip)) skip = 0;
  for (let i = 0; i < size; i++) {
    const id = head.id(i);
    if (id < 0 || (id < 32 && ((skip >>> id) & 1) === 1)) continue;
    const nameStart = head.nameStart(i);
    if (nameStart !== end) {
      sink.send(start, end - start);
      sent += end - start;
      start = nameStart;
    }
    end = head.lineEnd(i);
  }
  // The received empty line is sent together with the last field.
  if (tail === 0 && end === head.headEnd - 2) {
    sink.send(start, head.headEnd - start);
    sent += head.headEnd - start;
  } else {
    sink.send(start, end - start);
    sink.send(tailLine.start, tailLine.length);
    sent += end - start + tailLine.length;
  }
  bytes.sent += sent;
  bytes.headersSent += sent - startLine - EMPTY_LINE_BYTES;
}

const EMPTY_LINE_BYTES = 2;

/** Fields that frame or route a message are not allowed in trailers (RFC 9110 section 6.5.1). */
const SKIP_IN_TRAILERS =
  SKIP_CONNECTION |
  SKIP_LENGTH |
  SKIP_CODING |
  (1 << ConnectionHeader.Host) |
  (1 << ConnectionHeader.Te) |
  (1 << ConnectionHeader.Trailer) |
  (1 << ConnectionHeader.Upgrade) |
  (1 << ConnectionHeader.Expect);

const VERSION_BEHIND_PATH = new TextEncoder().encode(' HTTP/1.1\r\n');
