// The errors of HTTP/2, as they are reported to streams. Details equal Envoy's response code details where Envoy has one.

import { ResponseFlag } from '../../access-log/stream/response-flags.js';
import { HttpStats } from '../../stats/layouts/http.js';
import { type CodecError, ResetReason } from '../codec/streams.js';
import { ErrorCode } from './frames.js';
import { SectionError } from './head-builder.js';

/** Errors of messages, by SectionError. */
export const SECTION_ERRORS: Readonly<Record<SectionError, CodecError>> = {
  [SectionError.None]: violation(''),
  [SectionError.InvalidField]: violation('http2.invalid.header.field'),
  [SectionError.InvalidMessage]: violation('http2.violation.of.messaging.rule'),
  [SectionError.TooLarge]: {
    status: 0,
    detail: 'http2.header_list_size_too_large',
    flags: ResponseFlag.DownstreamRemoteReset,
  },
  [SectionError.TooManyFields]: {
    status: 0,
    detail: 'http2.too_many_headers',
    flags: ResponseFlag.DownstreamRemoteReset,
  },
};

/** A body that is not as long as its content-length. */
export const WRONG_LENGTH = violation('http2.remote_reset');
export const FLOW_CONTROL = violation('http2.remote_reset');
/** A header name with an underscore, if the configuration rejects them. */
export const UNDERSCORE: CodecError = {
  status: 0,
  detail: 'http2.unexpected_underscore',
  flags: ResponseFlag.DownstreamRemoteReset,
};
export const REMOTE_RESET: CodecError = {
  status: 0,
  detail: 'http2.remote_reset',
  flags: ResponseFlag.DownstreamRemoteReset,
};
/** An invalid frame. If it ends the connection, all streams get this error, including those that did not cause it. */
export const CONNECTION_ERROR = violation('http2.unknown.nghttp2.error');
export const EMPTY_FRAMES_FLOOD = violation('http2.inbound_empty_frames_flood');
export const WINDOW_UPDATE_FLOOD = violation('http2.inbound_window_update_frames_flood');
export const PRIORITY_FLOOD = violation('http2.inbound_priority_frames_flood');
/** The peer has not answered a ping. */
export const KEEPALIVE_TIMEOUT: CodecError = {
  status: 0,
  detail: 'http2.ping_timeout',
  flags: ResponseFlag.DownstreamConnectionTermination,
};
export const OUTBOUND_FLOOD = violation('http2.outbound_frames_flood');
export const OUTBOUND_CONTROL_FLOOD = violation('http2.outbound_control_frames_flood');

/** A path with a fragment, or with bytes above 127, which hosts decode in different ways. The connection continues. */
export const INVALID_PATH: CodecError = {
  status: 400,
  detail: 'path_normalization_failed',
  counter: HttpStats.at.downstream_rq_failed_path_normalization,
};

function violation(detail: string): CodecError {
  return { status: 400, detail, flags: ResponseFlag.DownstreamProtocolError };
}

/** Returns the code with which a stream is reset; as in Envoy, most reasons look like an internal error. */
export function errorCodeOf(reason: ResetReason): ErrorCode {
  switch (reason) {
    case ResetReason.ProtocolError:
      return ErrorCode.ProtocolError;
    case ResetReason.RefusedStream:
      return ErrorCode.RefusedStream;
    case ResetReason.ConnectError:
      return ErrorCode.ConnectError;
    case ResetReason.RemoteReset:
    case ResetReason.ConnectionTermination:
    case ResetReason.LocalReset:
    case ResetReason.LocalClose:
    case ResetReason.InternalError:
      return ErrorCode.InternalError;
  }
}
