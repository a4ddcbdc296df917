// Sends heads as ranges. Adjacent received lines are one range, and an unchanged head is a single range.

import type { StreamBytes } from '../../access-log/stream/stream-bytes.js';
import { ConnectionHeader } from '../../common/text/header-names.js';
import { NameCase } from '../codec/options.js';
import type { ByteSink } from '../codec/streams.js';
import type { HeaderBlock } from '../headers/header-block.js';
import { type Line, Tail } from './lines.js';
import { writeProperName } from './proper-name.js';
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
  names = NameCase.AsReceived,
): void {
  const send = names === NameCase.AsReceived ? sendFields : names === NameCase.Proper ? sendProper : sendProperIfAdded;
  if (head.startLineEnd > head.startLineStart) {
    send(sink, head, head.startLineStart, head.startLineEnd, skip, shared, tail, bytes);
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
  send(sink, head, start, at, skip, shared, tail, bytes);
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
  names = NameCase.AsReceived,
): void {
  const send = names === NameCase.AsReceived ? sendFields : names === NameCase.Proper ? sendProper : sendProperIfAdded;
  if (head.startLineEnd > head.startLineStart && minorVersion === 1) {
    send(sink, head, head.startLineStart, head.startLineEnd, skip, shared, tail, bytes);
    return;
  }
  const line = shared.lines.statusLine(head.status, minorVersion);
  send(sink, head, line.start, line.start + line.length, skip, shared, tail, bytes);
}

/** Sends the chunk of size 0 and the trailer fields. */
export function sendTrailers(sink: ByteSink, shared: H1Shared, trailers: HeaderBlock, bytes: StreamBytes): void {
  const { zeroChunk } = shared.lines;
  const end = zeroChunk.start + zeroChunk.length;
  sendFields(sink, trailers, zeroChunk.start, end, SKIP_IN_TRAILERS, shared, Tail.None, bytes);
}

/** Sends [start, end), the fields of `head` without the names in `skip`, and the lines of `tail`. */
function sendFields(
  sink: ByteSink,
  head: HeaderBlock,
  start: number,
  end: number,
  skip: number,
  shared: H1Shared,
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
  if (tail === Tail.None && end === head.headEnd - 2) {
    sink.send(start, head.headEnd - start);
    sent += head.headEnd - start;
  } else {
    const tailLine = shared.lines.tails[tail]!;
    sink.send(start, end - start);
    sink.send(tailLine.start, tailLine.length);
    sent += end - start + tailLine.length;
  }
  bytes.sent += sent;
  bytes.headersSent += sent - startLine - EMPTY_LINE_BYTES;
}

/** Does the same with all names in proper case. */
function sendProper(
  sink: ByteSink,
  head: HeaderBlock,
  start: number,
  end: number,
  skip: number,
  shared: H1Shared,
  tail: number,
  bytes: StreamBytes,
): void {
  sendRenamed(sink, head, start, end, skip, shared.lines.properTails[tail]!, 0, bytes);
}

/** Does the same with the names of added fields in proper case. A local reply keeps its names, as in Envoy. */
function sendProperIfAdded(
  sink: ByteSink,
  head: HeaderBlock,
  start: number,
  end: number,
  skip: number,
  shared: H1Shared,
  tail: number,
  bytes: StreamBytes,
): void {
  const { receivedFields: received } = head;
  if (received < 0) sendFields(sink, head, start, end, skip, shared, tail, bytes);
  else sendRenamed(sink, head, start, end, skip, shared.lines.properTails[tail]!, received, bytes);
}

/** `first`: index of the first field that is renamed. */
function sendRenamed(
  sink: ByteSink,
  head: HeaderBlock,
  start: number,
  end: number,
  skip: number,
  tailLine: Line,
  first: number,
  bytes: StreamBytes,
): void {
  const { memory, size } = head;
  let fields = tailLine.length - EMPTY_LINE_BYTES;
  sink.send(start, end - start);
  for (let i = 0; i < size; i++) {
    const id = head.id(i);
    if (id < 0 || (id < 32 && ((skip >>> id) & 1) === 1)) continue;
    const nameStart = head.nameStart(i);
    const nameEnd = head.nameEnd(i);
    const lineEnd = head.lineEnd(i);
    fields += lineEnd - nameStart;
    if (i < first) {
      sink.send(nameStart, lineEnd - nameStart);
      continue;
    }
    const name = memory.scratch(nameEnd - nameStart);
    writeProperName(memory.bytes, nameStart, nameEnd, name);
    sink.send(name, nameEnd - nameStart);
    sink.send(nameEnd, lineEnd - nameEnd);
  }
  sink.send(tailLine.start, tailLine.length);
  bytes.sent += end - start + fields + EMPTY_LINE_BYTES;
  bytes.headersSent += fields;
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
