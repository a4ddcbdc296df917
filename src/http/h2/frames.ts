// The frames of HTTP/2 (RFC 9113, sections 4 and 6): types, flags, error codes, and their layout.

export const enum FrameType {
  Data = 0,
  Headers = 1,
  Priority = 2,
  RstStream = 3,
  Settings = 4,
  PushPromise = 5,
  Ping = 6,
  GoAway = 7,
  WindowUpdate = 8,
  Continuation = 9,
}

export const enum Flag {
  /** DATA, HEADERS. */
  EndStream = 0x1,
  EndHeaders = 0x4,
  Padded = 0x8,
  Priority = 0x20,
}

/** The flag of SETTINGS and PING. */
export const ACK = 0x1;

/** Section 7. */
export const enum ErrorCode {
  NoError = 0,
  ProtocolError = 1,
  InternalError = 2,
  FlowControlError = 3,
  SettingsTimeout = 4,
  StreamClosed = 5,
  FrameSizeError = 6,
  RefusedStream = 7,
  Cancel = 8,
  CompressionError = 9,
  ConnectError = 10,
  EnhanceYourCalm = 11,
  InadequateSecurity = 12,
  Http11Required = 13,
}

export const FRAME_HEADER_BYTES = 9;
/** The largest payload that this side accepts: the default, which suffices for throughput. */
export const MAX_FRAME_BYTES = 16384;
export const MAX_WINDOW = 0x7fffffff;
/** Both the windows of new connections and of their streams, until SETTINGS change the latter. */
export const DEFAULT_WINDOW = 65535;
export const MAX_STREAM_ID = 0x7fffffff;

/** What a client sends first (section 3.4). */
export const PREFACE = new TextEncoder().encode('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n');

/** Writes a frame header to bytes[at …]. */
export function writeFrameHeader(
  bytes: Uint8Array,
  at: number,
  length: number,
  type: FrameType,
  flags: number,
  streamId: number,
): void {
  bytes[at] = length >>> 16;
  bytes[at + 1] = length >>> 8;
  bytes[at + 2] = length;
  bytes[at + 3] = type;
  bytes[at + 4] = flags;
  writeUint32(bytes, at + 5, streamId);
}

export function writeUint32(bytes: Uint8Array, at: number, value: number): void {
  bytes[at] = value >>> 24;
  bytes[at + 1] = value >>> 16;
  bytes[at + 2] = value >>> 8;
  bytes[at + 3] = value;
}

/** Reads 31 bits; the reserved bit is ignored. */
export function readUint31(bytes: Uint8Array, at: number): number {
  return ((bytes[at]! & 0x7f) << 24) | (bytes[at + 1]! << 16) | (bytes[at + 2]! << 8) | bytes[at + 3]!;
}

export function readUint32(bytes: Uint8Array, at: number): number {
  return ((bytes[at]! << 24) | (bytes[at + 1]! << 16) | (bytes[at + 2]! << 8) | bytes[at + 3]!) >>> 0;
}
