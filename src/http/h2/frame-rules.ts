// What the header of a frame must obey by itself, whatever the state of the connection (RFC 9113, section 6).

import { ACK, ErrorCode, FrameType } from './frames.js';
import { SETTING_BYTES } from './settings.js';

export interface FrameFault {
  readonly code: ErrorCode;
  readonly text: string;
}

/** Returns undefined for a header without fault, and for DATA. */
export function frameFault(type: number, flags: number, streamId: number, length: number): FrameFault | undefined {
  switch (type) {
    case FrameType.Headers:
      return streamId === 0 ? HEADERS_STREAM : undefined;
    case FrameType.Priority:
      if (streamId === 0) return PRIORITY_STREAM;
      return length === 5 ? undefined : PRIORITY_SIZE;
    case FrameType.RstStream:
      return length === 4 ? undefined : RESET_SIZE;
    case FrameType.Settings:
      if (streamId !== 0) return SETTINGS_STREAM;
      return length % SETTING_BYTES === 0 && ((flags & ACK) === 0 || length === 0) ? undefined : SETTINGS_SIZE;
    case FrameType.PushPromise:
      return PUSH_PROMISE;
    case FrameType.Ping:
      if (streamId !== 0) return PING_STREAM;
      return length === 8 ? undefined : PING_SIZE;
    case FrameType.GoAway:
      if (streamId !== 0) return GOAWAY_STREAM;
      return length >= 8 ? undefined : GOAWAY_SIZE;
    case FrameType.WindowUpdate:
      return length === 4 ? undefined : WINDOW_UPDATE_SIZE;
    default:
      return undefined;
  }
}

const HEADERS_STREAM = fault(ErrorCode.ProtocolError, 'HEADERS: stream 0');
const PRIORITY_STREAM = fault(ErrorCode.ProtocolError, 'PRIORITY: stream 0');
const PRIORITY_SIZE = fault(ErrorCode.FrameSizeError, 'PRIORITY');
const RESET_SIZE = fault(ErrorCode.FrameSizeError, 'RST_STREAM');
const SETTINGS_STREAM = fault(ErrorCode.ProtocolError, 'SETTINGS: stream');
const SETTINGS_SIZE = fault(ErrorCode.FrameSizeError, 'SETTINGS');
const PUSH_PROMISE = fault(ErrorCode.ProtocolError, 'PUSH_PROMISE');
const PING_STREAM = fault(ErrorCode.ProtocolError, 'PING: stream');
const PING_SIZE = fault(ErrorCode.FrameSizeError, 'PING');
const GOAWAY_STREAM = fault(ErrorCode.ProtocolError, 'GOAWAY: stream');
const GOAWAY_SIZE = fault(ErrorCode.FrameSizeError, 'GOAWAY');
const WINDOW_UPDATE_SIZE = fault(ErrorCode.FrameSizeError, 'WINDOW_UPDATE');

function fault(code: ErrorCode, text: string): FrameFault {
  return { code, text };
}
