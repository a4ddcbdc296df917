// Answers routes without a cluster: redirects and direct responses.

import { headerKey } from '../../../../common/text/header-names.js';
import type { ResponseStream } from '../../../../http/filters/filter.js';
import type { HeaderBlock } from '../../../../http/headers/header-block.js';
import type { Route } from '../../../../http/routing/actions/route.js';
import { HttpStats } from '../../../../stats/layouts/http.js';

const CREATED = 201;
const HOST = headerKey('host');
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

/** Answers with the route's fixed response. As in Envoy, one with the status 201 or 3xx names the URL of the request. */
export function answerDirectly(stream: ResponseStream, route: Route<unknown>, request: HeaderBlock): void {
  stream.httpStats.increment(HttpStats.at.rq_direct_response);
  const { directStatus: status } = route;
  const namesUrl = status === CREATED || (status >= 300 && status < 400);
  const location = namesUrl ? `${stream.scheme}://${request.get(HOST) ?? ''}${request.pathText()}` : undefined;
  stream.sendLocalReply({
    status,
    body: route.directBody,
    details: 'direct_response',
    flags: 0,
    editHeaders: (headers) => {
      if (location !== undefined) headers.add(LOCATION, location);
      route.finalizeResponse(headers, stream.info);
    },
  });
}
