// Encodes header sections as HEADERS and CONTINUATION frames.

import { ConnectionHeader, OTHER_HEADER } from '../../common/text/header-names.js';
import type { Memory } from '../../io/memory.js';
import type { ByteSink } from '../codec/streams.js';
import { type HeaderBlock, Method } from '../headers/header-block.js';
import { Flag, FRAME_HEADER_BYTES, FrameType, writeFrameHeader } from './frames.js';
import { Section } from './head-builder.js';
import { BLOCK_OVERHEAD, FIELD_OVERHEAD, type HpackEncoder, StaticIndex } from './hpack/encoder.js';

/** Names of fields that are never sent, by section (RFC 9113, sections 8.2.2 and 8.3). */
const SKIPPED =
  (1 << ConnectionHeader.Connection) |
  (1 << ConnectionHeader.KeepAlive) |
  (1 << ConnectionHeader.ProxyConnection) |
  (1 << ConnectionHeader.TransferEncoding) |
  (1 << ConnectionHeader.Upgrade);
const SKIPPED_IN_REQUESTS = SKIPPED | (1 << ConnectionHeader.Host);
const SKIPPED_IN_RESPONSES = SKIPPED | (1 << ConnectionHeader.Te);
const SKIPPED_IN_TRAILERS =
  SKIPPED_IN_REQUESTS |
  (1 << ConnectionHeader.Te) |
  (1 << ConnectionHeader.ContentLength) |
  (1 << ConnectionHeader.Expect);

/** The pseudo-headers of a request, each with its overhead. */
const PSEUDO_BYTES = 4 * FIELD_OVERHEAD;
/** The additional texts of an extended CONNECT (RFC 8441), which an upgrade becomes. */
const CONNECT = 'CONNECT';
const PROTOCOL = ':protocol';
const CONNECT_BYTES = CONNECT.length + PROTOCOL.length + FIELD_OVERHEAD;

/** Sends `headers` on a stream. Throws NoRoomError. Returns the bytes of all frames. */
export function sendSection(
  sink: ByteSink,
  memory: Memory,
  encoder: HpackEncoder,
  streamId: number,
  headers: HeaderBlock,
  section: Section,
  endStream: boolean,
  maxFrameBytes: number,
  scheme: 'http' | 'https',
): number {
  const isUpgrade = section === Section.Request && isUpgradeRequest(headers);
  // Before the block, which takes the rest of the scratch.
  const texts = isUpgrade ? headers.writeText(CONNECT + PROTOCOL) : 0;
  const start = memory.scratch(boundOf(headers) + (isUpgrade ? CONNECT_BYTES : 0) + FRAME_HEADER_BYTES);
  const block = start + FRAME_HEADER_BYTES;
  let end = encoder.begin(block);
  if (section === Section.Response) end = encoder.status(end, headers.status);
  else if (isUpgrade) end = writeConnect(encoder, end, headers, scheme, texts);
  else if (section === Section.Request) end = writeRequestLine(encoder, end, headers, scheme);
  end = writeFields(encoder, end, headers, section);
  if (!memory.isScratchFull) memory.withdrawScratch(end);
  const length = end - block;
  const endFlag = endStream ? Flag.EndStream : 0;
  if (length <= maxFrameBytes) {
    writeFrameHeader(memory.bytes, start, length, FrameType.Headers, Flag.EndHeaders | endFlag, streamId);
    sink.send(start, end - start);
    return end - start;
  }
  writeFrameHeader(memory.bytes, start, maxFrameBytes, FrameType.Headers, endFlag, streamId);
  sink.send(start, FRAME_HEADER_BYTES + maxFrameBytes);
  const frames = 1 + sendContinuations(sink, memory, streamId, block + maxFrameBytes, end, maxFrameBytes);
  return length + frames * FRAME_HEADER_BYTES;
}

function sendContinuations(
  sink: ByteSink,
  memory: Memory,
  streamId: number,
  at: number,
  end: number,
  maxFrameBytes: number,
): number {
  let frames = 0;
  for (; at < end; at += maxFrameBytes, frames++) {
    const length = Math.min(maxFrameBytes, end - at);
    const header = memory.scratch(FRAME_HEADER_BYTES);
    const flags = at + length === end ? Flag.EndHeaders : 0;
    writeFrameHeader(memory.bytes, header, length, FrameType.Continuation, flags, streamId);
    sink.send(header, FRAME_HEADER_BYTES);
    sink.send(at, length);
  }
  return frames;
}

function boundOf(headers: HeaderBlock): number {
  const target = headers.methodEnd - headers.methodStart + headers.pathEnd - headers.pathStart;
  return BLOCK_OVERHEAD + PSEUDO_BYTES + target + headers.linesLength() + headers.size * FIELD_OVERHEAD;
}

function writeRequestLine(encoder: HpackEncoder, to: number, headers: HeaderBlock, scheme: 'http' | 'https'): number {
  const { methodStart, methodEnd } = headers;
  if (headers.method === Method.Get) to = encoder.indexed(to, StaticIndex.MethodGet);
  else if (headers.method === Method.Post) to = encoder.indexed(to, StaticIndex.MethodPost);
  else to = encoder.pseudo(to, StaticIndex.MethodGet, methodStart, methodEnd);
  if (headers.method !== Method.Connect) to = writeTarget(encoder, to, headers, scheme);
  return writeAuthority(encoder, to, headers);
}

function writeTarget(encoder: HpackEncoder, to: number, headers: HeaderBlock, scheme: 'http' | 'https'): number {
  const { pathStart, pathEnd } = headers;
  if (pathEnd - pathStart === 1 && headers.memory.bytes[pathStart] === 47) to = encoder.indexed(to, StaticIndex.Path);
  else to = encoder.pseudo(to, StaticIndex.Path, pathStart, pathEnd);
  return encoder.indexed(to, scheme === 'https' ? StaticIndex.SchemeHttps : StaticIndex.SchemeHttp);
}

function writeAuthority(encoder: HpackEncoder, to: number, headers: HeaderBlock): number {
  const host = headers.findId(ConnectionHeader.Host);
  return host < 0 ? to : encoder.authority(to, headers.valueStart(host), headers.valueEnd(host));
}

/** Returns whether a request asks for an upgrade. A filter may have removed the field. */
export function isUpgradeRequest(headers: HeaderBlock): boolean {
  return headers.upgrade && headers.findId(ConnectionHeader.Upgrade) >= 0;
}

/** `texts`: the offset of CONNECT and PROTOCOL. */
function writeConnect(
  encoder: HpackEncoder,
  to: number,
  headers: HeaderBlock,
  scheme: 'http' | 'https',
  texts: number,
): number {
  const name = texts + CONNECT.length;
  const upgrade = headers.findId(ConnectionHeader.Upgrade);
  to = encoder.pseudo(to, StaticIndex.MethodGet, texts, name);
  to = writeTarget(encoder, to, headers, scheme);
  to = writeAuthority(encoder, to, headers);
  const end = name + PROTOCOL.length;
  return encoder.field(to, OTHER_HEADER, name, end, headers.valueStart(upgrade), headers.valueEnd(upgrade));
}

function writeFields(encoder: HpackEncoder, to: number, headers: HeaderBlock, section: Section): number {
  const skipped =
    section === Section.Response
      ? SKIPPED_IN_RESPONSES
      : section === Section.Request
        ? SKIPPED_IN_REQUESTS
        : SKIPPED_IN_TRAILERS;
  const { size } = headers;
  for (let i = 0; i < size; i++) {
    const id = headers.id(i);
    if (id < 0 || (id < 32 && ((skipped >>> id) & 1) === 1)) continue;
    to = encoder.field(to, id, headers.nameStart(i), headers.nameEnd(i), headers.valueStart(i), headers.valueEnd(i));
  }
  return to;
}
