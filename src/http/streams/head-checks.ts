// Validates and normalizes the head of a request before routing.

import { ResponseFlag } from '../../access-log/stream/response-flags.js';
import { Protocol } from '../../access-log/stream/stream-info.js';
import { knownHeader } from '../../common/text/header-names.js';
import { Http1CodecStats, HttpStats } from '../../stats/layouts/http.js';
import type { LocalReply } from '../filters/filter.js';
import { type HeaderBlock, Method } from '../headers/header-block.js';
import { reasonPhrase } from '../headers/reason-phrase.js';
import type { ConnectionManagerStats, ManagerContext } from '../manager-context.js';
import { dropUnderscoredNames, hasUnderscoredNames } from '../normalization/header-underscores.js';

const HOST = knownHeader('host');
const SLASH = 47;

/** HTTP/1.0 requests may lack Host; upstream requests are HTTP/1.1 and may not. */
const MISSING_HOST: LocalReply = { status: 400, body: '', details: 'missing_host_header', flags: 0 };
/** `OPTIONS *`. */
const NO_PATH: LocalReply = { status: 404, body: '', details: 'absolute_path_rejected', flags: 0 };
/** Answered, logged and counted like an unreadable head, because Envoy's codec refuses it. */
export const UNDERSCORE: LocalReply = {
  status: 400,
  body: reasonPhrase(400),
  details: 'http1.unexpected_underscore',
  flags: ResponseFlag.DownstreamProtocolError,
};

/** Returns the local reply for a request that must not be served, if any. */
export function checkHead(
  headers: HeaderBlock,
  protocol: Protocol,
  { options, stats }: ManagerContext,
): LocalReply | undefined {
  if (protocol === Protocol.Http10 && headers.findId(HOST) < 0) {
    if (options.defaultHost === undefined) return MISSING_HOST;
    options.defaultHost.addTo(headers);
  }
  // The codec of HTTP/2 does the same itself.
  if (options.underscores !== 'ALLOW' && protocol !== Protocol.Http2 && hasUnderscoredNames(headers)) {
    if (options.underscores === 'REJECT_REQUEST') {
      stats.http1.increment(Http1CodecStats.at.requests_rejected_with_underscores_in_headers);
      stats.http.increment(HttpStats.at.downstream_cx_protocol_error);
      return UNDERSCORE;
    }
    stats.http1.add(Http1CodecStats.at.dropped_headers_with_underscores, dropUnderscoredNames(headers));
  }
  if (headers.memory.bytes[headers.pathStart] !== SLASH && headers.method !== Method.Connect) {
    stats.http.increment(HttpStats.at.downstream_rq_non_relative_path);
    return NO_PATH;
  }
  const answer = options.paths?.apply(headers);
  if (answer !== undefined) countPath(answer, stats);
  return answer;
}

/** Counts a refusal (400) or a redirect to the normalized path. */
function countPath({ status }: LocalReply, { http }: ConnectionManagerStats): void {
  const { at } = HttpStats;
  http.increment(
    status < 400 ? at.downstream_rq_redirected_with_normalized_path : at.downstream_rq_failed_path_normalization,
  );
}
