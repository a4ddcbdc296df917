// The local replies that a stream itself sends: on timeouts and for refused upgrades.

import { ResponseFlag } from '../../access-log/stream/response-flags.js';
import { headerKey } from '../../common/text/header-names.js';
import type { LocalReply } from '../filters/filter.js';
import type { HeaderBlock } from '../headers/header-block.js';

const GRPC_STATUS = headerKey('grpc-status');

/** The head of a request was not complete within HttpConnectionManager.request_headers_timeout. */
export const LATE_HEAD: Readonly<LocalReply> = {
  status: 408,
  body: 'request header timeout',
  details: 'request_header_timeout',
  flags: 0,
};

/** The request was not complete within HttpConnectionManager.request_timeout. */
export const LATE_REQUEST: Readonly<LocalReply> = {
  status: 408,
  body: 'request timeout',
  details: 'request_overall_timeout',
  flags: 0,
};

/** An incomplete request holds memory while memory is short. */
export const TOO_SLOW: Readonly<LocalReply> = {
  status: 408,
  body: 'request too slow while memory is short',
  details: 'memory_pressure',
  flags: ResponseFlag.OverloadManager,
};

/** The server is overloaded: the request is not served. */
export const OVERLOADED: Readonly<LocalReply> = {
  status: 503,
  body: 'envoy overloaded',
  details: 'overload',
  flags: 0,
};

/** The server is overloaded: the input of the client is dropped. As in Envoy, with the flag of a protocol error. */
export const OVERLOADED_DISPATCH: Readonly<LocalReply> = {
  status: 500,
  body: 'Internal Server Error',
  details: 'overload',
  flags: ResponseFlag.DownstreamProtocolError,
};

export const REFUSED_UPGRADE: Readonly<LocalReply> = { status: 403, body: '', details: 'upgrade_failed', flags: 0 };

/** The reply to a stream without progress. */
export function idleTooLong(isRequestComplete: boolean): LocalReply {
  return {
    status: slow(isRequestComplete),
    body: 'stream timeout',
    details: 'stream_idle_timeout',
    flags: ResponseFlag.StreamIdleTimeout,
  };
}

/** The reply to a stream that has reached its maximum duration. */
export function lastedTooLong(isRequestComplete: boolean, isGrpc: boolean): LocalReply {
  return {
    status: slow(isRequestComplete),
    body: 'downstream duration timeout',
    details: 'max_duration_timeout',
    flags: 0,
    editHeaders: isGrpc ? exceedDeadline : undefined,
  };
}

/** Returns 504 if the stream waited for the host, 408 if it waited for the client. */
function slow(isRequestComplete: boolean): number {
  return isRequestComplete ? 504 : 408;
}

/** Sets DEADLINE_EXCEEDED, because the HTTP status maps to another grpc-status. */
function exceedDeadline(headers: HeaderBlock): void {
  headers.add(GRPC_STATUS, '4');
}

/** original_ip_detection_extensions find no address of the client, and one of them requires it. */
export function withoutClient(status: number): LocalReply {
  return { status, body: '', details: 'rejecting_because_detection_failed', flags: 0 };
}
