// The errors of HTTP/1 messages: codes for the parsers, and the CodecError of each.

import { ResponseFlag } from '../../access-log/stream/response-flags.js';
import { HttpStats } from '../../stats/layouts/http.js';
import { type CodecError, NO_MEMORY } from '../codec/streams.js';
import { reasonPhrase } from '../headers/reason-phrase.js';

/** Parsers return these codes negated. */
export const enum H1Error {
  /** Method, spaces or the end of the request line. */
  RequestLine = 1,
  StatusLine,
  /** HTTP/1.0 where that is refused, or a version that is neither HTTP/1.0 nor HTTP/1.1. */
  Version,
  /** A target that is neither a path nor a valid URL. */
  Target,
  /** A target with a byte that is not allowed there. */
  TargetByte,
  /** A target with a control character. */
  TargetControl,
  /** A target with a fragment. */
  Fragment,
  /** The URL of a scheme that is not http or https. */
  Scheme,
  /** An https URL, where that is refused. */
  HttpsTarget,
  /** A field line that does not begin with a valid name and a colon; also a folded line of a request. */
  FieldName,
  /** A control character in a value, or NUL in a name. */
  FieldValue,
  /** Connection names too many fields, or one that clients may not nominate. */
  Connection,
  /** CR or LF that is not part of CRLF. */
  LineEnd,
  HeadTooLarge,
  TooManyFields,
  HostMissing,
  HostRepeated,
  HostInvalid,
  ContentLength,
  /** Content-Length in a message that cannot have a body: CONNECT, 1xx, 204. */
  ContentLengthNotAllowed,
  LengthAndCoding,
  /** A transfer coding other than exactly one chunked. */
  Coding,
  CodingNotAllowed,
  ChunkSize,
  ChunkExtension,
  ChunkEnd,
  /** Bytes from a host without a request. */
  Unrequested,
  /** 101 without a request for it. */
  UpgradeNotRequested,
  /** The arena has no room for bytes that must be kept. */
  NoMemory,
}

const CODEC_ERROR = 'http1.codec_error';

/** Indexed by H1Error. Details equal Envoy's response code details where Envoy has one. */
const ERRORS: Readonly<Record<H1Error, CodecError>> = {
  [H1Error.RequestLine]: unreadable(400, CODEC_ERROR),
  [H1Error.StatusLine]: { status: 502, detail: CODEC_ERROR },
  [H1Error.Version]: unreadable(426, 'low_version'),
  [H1Error.Target]: unreadable(400, 'http1.invalid_url'),
  [H1Error.TargetByte]: unreadable(400, CODEC_ERROR),
  [H1Error.TargetControl]: unreadable(400, 'http1.invalid_characters'),
  [H1Error.Fragment]: {
    status: 400,
    detail: 'path_normalization_failed',
    isHeadRead: true,
    counter: HttpStats.at.downstream_rq_failed_path_normalization,
  },
  [H1Error.Scheme]: unreadable(400, 'http1.invalid_scheme'),
  [H1Error.HttpsTarget]: unreadable(403, 'http1.https_url_on_plaintext_connection'),
  [H1Error.FieldName]: unreadable(400, CODEC_ERROR),
  [H1Error.FieldValue]: unreadable(400, 'http1.invalid_characters'),
  [H1Error.Connection]: unreadable(400, 'http1.connection_header_rejected'),
  [H1Error.LineEnd]: unreadable(400, CODEC_ERROR),
  [H1Error.HeadTooLarge]: unreadable(431, 'http1.headers_too_large'),
  [H1Error.TooManyFields]: unreadable(431, 'http1.too_many_headers'),
  [H1Error.HostMissing]: { status: 400, detail: 'missing_host_header', isHeadRead: true },
  [H1Error.HostRepeated]: unreadable(400, CODEC_ERROR),
  [H1Error.HostInvalid]: unreadable(400, 'http.invalid_authority'),
  [H1Error.ContentLength]: unreadable(400, CODEC_ERROR),
  [H1Error.ContentLengthNotAllowed]: unreadable(400, 'http1.content_length_not_allowed'),
  [H1Error.LengthAndCoding]: unreadable(400, 'http1.content_length_and_chunked_not_allowed'),
  [H1Error.Coding]: unreadable(400, 'http1.invalid_transfer_encoding'),
  [H1Error.CodingNotAllowed]: unreadable(400, 'http1.transfer_encoding_not_allowed'),
  [H1Error.ChunkSize]: unreadable(400, CODEC_ERROR),
  [H1Error.ChunkExtension]: unreadable(400, CODEC_ERROR),
  [H1Error.ChunkEnd]: unreadable(400, CODEC_ERROR),
  [H1Error.Unrequested]: { status: 502, detail: CODEC_ERROR },
  [H1Error.UpgradeNotRequested]: { status: 502, detail: CODEC_ERROR },
  [H1Error.NoMemory]: NO_MEMORY,
};

/** An error for input that is not HTTP/1. As in Envoy, the answer's body is the reason phrase. */
function unreadable(status: number, detail: string): CodecError {
  return { status, detail, body: reasonPhrase(status), flags: ResponseFlag.DownstreamProtocolError };
}

/** Returns the CodecError of a parser's code. */
export function codecError(code: H1Error): CodecError {
  return ERRORS[code];
}
