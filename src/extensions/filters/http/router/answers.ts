// The router's local replies for each case in which no host answers: response for the client, details and flags for logs.

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

/** `status`: the route's clusterNotFoundStatus. */
export function noCluster(status: number): Answer {
  return { status, body: '', details: 'cluster_not_found', flags: ResponseFlag.NoClusterFound };
}

/** For the runtime key upstream.maintenance_mode.<cluster>. */
export const MAINTENANCE: Answer = {
  status: 503,
  body: 'maintenance mode',
  details: 'maintenance_mode',
  flags: ResponseFlag.UpstreamOverflow,
};

/** For drop_overloads of the load assignment. */
export const DROPPED: Answer = {
  status: 503,
  body: 'drop overload',
  details: 'drop_overload',
  flags: ResponseFlag.DropOverload,
};

/** For drop_overloads of 100 %. */
export const ALL_DROPPED: Answer = {
  status: 503,
  body: 'unconditional drop overload',
  details: 'unconditional_drop_overload',
  flags: ResponseFlag.UnconditionalDropOverload,
};

export const NO_HEALTHY_HOST: Answer = {
  status: 503,
  body: 'no healthy upstream',
  details: 'no_healthy_upstream',
  flags: ResponseFlag.NoHealthyUpstream,
};

/** `details` name the timeout; `isEmpty`: the request asked for an empty 204. */
export function timedOut(details: string, isEmpty: boolean): Answer {
  const flags = ResponseFlag.UpstreamRequestTimeout;
  if (isEmpty) return { status: 204, body: '', details, flags };
  return { status: 504, body: 'upstream request timeout', details, flags };
}

/** For a stream that reached its maximum duration. */
export function maxDurationReached(details: string, isRequestComplete: boolean): Answer {
  const flags = ResponseFlag.UpstreamMaxStreamDurationReached;
  return { status: isRequestComplete ? 504 : 408, body: 'upstream max stream duration reached', details, flags };
}

/** For a last try without response. As in Envoy, only the details, for logs, have the transport's error. */
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
