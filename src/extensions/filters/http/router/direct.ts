// Answers routes without a cluster: redirects and direct responses.

import { headerKey } from '../../../../common/text/header-names.js';
import type { ResponseStream } from '../../../../http/filters/filter.js';
import type { HeaderBlock } from '../../../../http/headers/header-block.js';
import type { Route } from '../../../../http/routing/actions/route.js';
import { HttpStats } from '../../../../stats/layouts/http.js';

const LOCATION = headerKey('location');

/** Answers with the route's redirect, which Envoy counts as a direct response. */
export function answerWithRedirect(stream: ResponseStream, route: Route<unknown>, request: HeaderBlock): void {
  stream.httpStats.increment(HttpStats.at.rq_direct_response);
  const location = route.redirectLocation(request, stream.scheme);
  stream.sendLocalReply({
    status: route.redirectStatus,
    body: '',
    details: 'direct_response',
    flags: 0,
    editHeaders: (headers) => {
      headers.add(LOCATION, location);
      route.finalizeResponse(headers, stream.info);
    },
  });
}

/** Answers with the route's fixed response. */
export function answerDirectly(stream: ResponseStream, route: Route<unknown>): void {
  stream.httpStats.increment(HttpStats.at.rq_direct_response);
  stream.sendLocalReply({
    status: route.directStatus,
    body: route.directBody,
    details: 'direct_response',
    flags: 0,
    editHeaders: (headers) => route.finalizeResponse(headers, stream.info),
  });
}
