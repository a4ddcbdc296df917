// The answers that the router gives when no host does: what clients and logs are told of each way in which that comes about.

import { ResponseFlag } from '../../../../access-log/stream/response-flags.js';
import type { LocalReply } from '../../../../http/filters/filter.js';
import type { Failure } from './failures.js';

type Answer = Readonly<LocalReply>;

export const NO_ROUTE: Answer = {
  status: 404,
  body: '',
  details: 'route_not_found',
  flags: ResponseFlag.NoRouteFound,
};

/** `status`: as the route has it. */
export function noCluster(status: number): Answer {
  return { status, body: '', details: 'cluster_not_found', flags: ResponseFlag.NoClusterFound };
}

/** upstream.maintenance_mode.<cluster> of runtime. */
export const MAINTENANCE: Answer = {
  status: 503,
  body: 'maintenance mode',
  details: 'maintenance_mode',
  flags: ResponseFlag.UpstreamOverflow,
};

export const NO_HEALTHY_HOST: Answer = {
  status: 503,
  body: 'no healthy upstream',
  details: 'no_healthy_upstream',
  flags: ResponseFlag.NoHealthyUpstream,
};

/** `details` tell which timeout it was; `isEmpty`: the request asked for an answer that is no error. */
export function timedOut(details: string, isEmpty: boolean): Answer {
  const flags = ResponseFlag.UpstreamRequestTimeout;
  if (isEmpty) return { status: 204, body: '', details, flags };
  return { status: 504, body: 'upstream request timeout', details, flags };
}

/** A stream has lasted as long as it may. */
export function lastedTooLong(details: string, isRequestComplete: boolean): Answer {
  const flags = ResponseFlag.UpstreamMaxStreamDurationReached;
  return { status: isRequestComplete ? 504 : 408, body: 'upstream max stream duration reached', details, flags };
}

/** The last try ended without a response. As in Envoy only the details, which logs have, say what the transport says of it. */
export function noResponse(failure: Failure, wasRetried: boolean): Answer {
  const { reason, transport, status, flag } = failure;
  const how = wasRetried ? 'retried and the latest reset reason' : 'reset reason';
  const detail = transport === '' ? '' : `|${transport}`;
  return {
    status,
    body: `upstream connect error or disconnect/reset before headers. ${how}: ${reason}`,
    details: `upstream_reset_before_response_started{${reason}${detail}}`.replaceAll(' ', '_'),
    flags: flag,
  };
}
