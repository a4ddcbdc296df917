// The CORS filter of one stream: checks and counts the origin, answers preflights, and adds the CORS fields to the response.

import {
  type HeaderBlock,
  type HeaderKey,
  HeadersStatus,
  type HttpFilter,
  headerKey,
  Method,
  type Random,
  ResponseFlag,
  type Scope,
  type StreamControl,
} from '../../../sdk.js';
import type { CorsPolicy } from './policy.js';
import { CorsStats } from './stats.js';

const { at } = CorsStats;

const ORIGIN = headerKey('origin');
const REQUEST_METHOD = headerKey('access-control-request-method');
const REQUEST_HEADERS = headerKey('access-control-request-headers');
const REQUEST_PRIVATE_NETWORK = headerKey('access-control-request-private-network');
const ALLOW_ORIGIN = headerKey('access-control-allow-origin');
const ALLOW_CREDENTIALS = headerKey('access-control-allow-credentials');
const ALLOW_METHODS = headerKey('access-control-allow-methods');
const ALLOW_HEADERS = headerKey('access-control-allow-headers');
const ALLOW_PRIVATE_NETWORK = headerKey('access-control-allow-private-network');
const EXPOSE_HEADERS = headerKey('access-control-expose-headers');
const MAX_AGE = headerKey('access-control-max-age');

export class CorsFilter implements HttpFilter {
  readonly #stream: StreamControl;
  readonly #policy: CorsPolicy;
  readonly #stats: Scope;
  readonly #random: Random;
  /** The allowed origin of the request, for the response; '': the response is not changed. */
  #origin = '';

  constructor(stream: StreamControl, policy: CorsPolicy, stats: Scope, random: Random) {
    this.#stream = stream;
    this.#policy = policy;
    this.#stats = stats;
    this.#random = random;
  }

  decodeHeaders(headers: HeaderBlock): HeadersStatus {
    const origin = headers.get(ORIGIN) ?? '';
    if (origin === '') return HeadersStatus.Continue;
    const { enabled, forwardsNotMatching, origins, shadow } = this.#policy;
    // Each fraction is drawn once per request, so that the shares are exact.
    const isEnabled = enabled.isHit(this.#random);
    if (!isEnabled && !shadow.isHit(this.#random)) return HeadersStatus.Continue;
    const isAllowed = origins.allow(headers);
    this.#stats.increment(isAllowed ? at.origin_valid : at.origin_invalid);
    if (!isEnabled) return HeadersStatus.Continue;
    if (isAllowed) this.#origin = origin;
    if (headers.method !== Method.Options || (!isAllowed && forwardsNotMatching)) return HeadersStatus.Continue;
    const method = headers.get(REQUEST_METHOD) ?? '';
    if (method === '') return HeadersStatus.Continue;
    this.#answer(headers, method);
    return HeadersStatus.StopIteration;
  }

  encodeHeaders(headers: HeaderBlock): HeadersStatus {
    if (this.#origin === '') return HeadersStatus.Continue;
    const { allowsCredentials, exposeHeaders } = this.#policy;
    put(headers, ALLOW_ORIGIN, this.#origin);
    if (allowsCredentials) put(headers, ALLOW_CREDENTIALS, 'true');
    if (exposeHeaders !== '') put(headers, EXPOSE_HEADERS, exposeHeaders);
    return HeadersStatus.Continue;
  }

  /** Answers a preflight. The reply also passes encodeHeaders(). */
  #answer(request: HeaderBlock, method: string): void {
    const { allowHeaders, allowMethods, allowsCredentials, allowsPrivateNetwork, maxAge } = this.#policy;
    this.#stream.sendLocalReply({
      status: 200,
      body: '',
      details: 'cors_response',
      flags: ResponseFlag.None,
      isVerbatim: true,
      editHeaders: (headers) => {
        if (this.#origin !== '') headers.add(ALLOW_ORIGIN, this.#origin);
        if (allowsCredentials) headers.add(ALLOW_CREDENTIALS, 'true');
        // With credentials, browsers treat `*` as a name. Echoing the requested names has the meaning of `*` for all of them.
        if (allowMethods !== '') headers.add(ALLOW_METHODS, allowMethods === '*' ? method : allowMethods);
        if (allowHeaders !== '') {
          headers.add(ALLOW_HEADERS, allowHeaders === '*' ? (request.get(REQUEST_HEADERS) ?? '') : allowHeaders);
        }
        if (maxAge !== '') headers.add(MAX_AGE, maxAge);
        if (allowsPrivateNetwork && request.get(REQUEST_PRIVATE_NETWORK) === 'true') {
          headers.add(ALLOW_PRIVATE_NETWORK, 'true');
        }
      },
    });
  }
}

/** Sets a field, replacing the host's values. A no-op if the field already has exactly this value. */
function put(headers: HeaderBlock, key: HeaderKey, value: string): void {
  const index = headers.find(key);
  if (index >= 0 && headers.find(key, index + 1) < 0 && headers.value(index) === value) return;
  headers.set(key, value);
}
