// The answers that a stream gives by itself, beside those of its filters: what clients and logs are told when a time is over or
// another protocol is not to be had.

import { ResponseFlag } from '../../access-log/stream/response-flags.js';
import { headerKey } from '../../common/text/header-names.js';
import type { LocalReply } from '../filters/filter.js';
import type { HeaderBlock } from '../headers/header-block.js';

const GRPC_STATUS = headerKey('grpc-status');

/** The head of a request has not come as a whole within HttpConnectionManager.request_headers_timeout. */
export const LATE_HEAD: Readonly<LocalReply> = {
  status: 408,
  body: 'request header timeout',
  details: 'request_header_timeout',
  flags: 0,
};

/** The request has not come as a whole within HttpConnectionManager.request_timeout. */
export const LATE_REQUEST: Readonly<LocalReply> = {
  status: 408,
  body: 'request timeout',
  details: 'request_overall_timeout',
  flags: 0,
};

/** The rest of the request has not come, what there is of it takes memory, and that is short. */
export const TOO_SLOW: Readonly<LocalReply> = {
  status: 408,
  body: 'request too slow while memory is short',
  details: 'memory_pressure',
  flags: ResponseFlag.OverloadManager,
};

export const REFUSED_UPGRADE: Readonly<LocalReply> = { status: 403, body: '', details: 'upgrade_failed', flags: 0 };

/** Nothing has moved for too long. */
export function idleTooLong(isRequestComplete: boolean): LocalReply {
  return {
    status: slow(isRequestComplete),
    body: 'stream timeout',
    details: 'stream_idle_timeout',
    flags: ResponseFlag.StreamIdleTimeout,
  };
}

/** It has lasted as long as it may. */
export function lastedTooLong(isRequestComplete: boolean, isGrpc: boolean): LocalReply {
  return {
    status: slow(isRequestComplete),
    body: 'downstream duration timeout',
    details: 'max_duration_timeout',
    flags: 0,
    editHeaders: isGrpc ? exceedDeadline : undefined,
  };
}

/** Whoever has not done his part: the host, or the client. */
function slow(isRequestComplete: boolean): number {
  return isRequestComplete ? 504 : 408;
}

/** DEADLINE_EXCEEDED, where the status of HTTP would become another one. */
function exceedDeadline(headers: HeaderBlock): void {
  headers.add(GRPC_STATUS, '4');
}
