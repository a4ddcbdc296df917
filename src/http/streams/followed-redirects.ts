// The redirects of hosts that a stream follows, up to the change of the request's head.

import { type HeaderKey, headerKey } from '../../common/text/header-names.js';
import { HttpStats } from '../../stats/layouts/http.js';
import type { Scope } from '../../stats/thread-stats.js';
import { BodyKind, type HeaderBlock, Method } from '../headers/header-block.js';
import type { InternalRedirects, RedirectHistory } from '../routing/actions/internal-redirects.js';
import { type RedirectTarget, redirectTarget } from '../routing/actions/redirect-target.js';
import type { Route } from '../routing/actions/route.js';

const HOST = headerKey('host');
const LOCATION = headerKey('location');
const CONTENT_LENGTH = headerKey('content-length');
const ORIGINAL_URL = headerKey('x-envoy-original-url');

/** A stream whose request is redirected. */
export interface RedirectedStream {
  readonly requestHeaders: HeaderBlock;
  readonly httpStats: Scope;
  /** The client's connection has TLS. */
  readonly isSecure: boolean;
  readonly route: Route<unknown> | undefined;
  /** Returns the route that the changed head has. */
  matchRoute(): Route<unknown> | undefined;
}

/** The parts of a head that a redirect replaces. */
interface Former {
  readonly authority: string;
  readonly path: string;
  readonly scheme: HeaderBlock['scheme'];
  readonly copied: readonly (readonly [key: HeaderKey, values: readonly string[]])[];
}

export class FollowedRedirects {
  #history: RedirectHistory = { count: 0, targets: new Map() };

  /** Begins a request. */
  begin(): void {
    const { count, targets } = this.#history;
    // A predicate records a redirect also if a later one refuses it.
    if (count > 0 || targets.size > 0) this.#history = { count: 0, targets: new Map() };
  }

  /**
   * Makes the request one for the target of the response. Returns false, with the request unchanged, if the redirect is not followed, which
   * is counted.
   */
  follow(stream: RedirectedStream, policy: InternalRedirects, response: HeaderBlock): boolean {
    const { at } = HttpStats;
    const { httpStats, isSecure, requestHeaders: headers } = stream;
    const location = response.get(LOCATION);
    if (location === undefined) return false;
    const target = redirectTarget(location);
    if (target === undefined) return refuse(httpStats, at.passthrough_internal_redirect_bad_location);
    const isFromHttps = isSecure && headers.scheme !== 'http';
    if (!policy.allowsCrossScheme && isFromHttps !== target.isHttps)
      return refuse(httpStats, at.passthrough_internal_redirect_unsafe_scheme);
    const history = this.#history;
    if (history.count >= policy.maxRedirects)
      return refuse(httpStats, at.passthrough_internal_redirect_too_many_redirects);
    const from = stream.route?.name ?? '';
    const former = replaceTarget(headers, target, policy, response);
    const route = stream.matchRoute();
    const isToHttps = target.isHttps;
    const isAccepted = route !== undefined && policy.accepts({ from, to: route.name, isFromHttps, isToHttps, history });
    if (!isAccepted) {
      restore(headers, former);
      const { passthrough_internal_redirect_no_route: noRoute, passthrough_internal_redirect_predicate: refused } = at;
      return refuse(httpStats, route === undefined ? noRoute : refused);
    }
    history.count++;
    headers.set(ORIGINAL_URL, `${isFromHttps ? 'https' : 'http'}://${former.authority}${former.path}`);
    return true;
  }
}

/** Makes a request a GET without a body, after a 303 (RFC 9110 section 15.4.4). Returns whether it did. */
export function becomesGet(headers: HeaderBlock, status: number): boolean {
  if (status !== 303 || headers.method === Method.Get || headers.method === Method.Head) return false;
  headers.setMethod(Method.Get, 'GET');
  headers.remove(CONTENT_LENGTH);
  headers.bodyKind = BodyKind.None;
  headers.contentLength = 0;
  return true;
}

function refuse(stats: Scope, counter: Parameters<Scope['increment']>[0]): false {
  stats.increment(counter);
  return false;
}

/** Returns what it has replaced. */
function replaceTarget(
  headers: HeaderBlock,
  target: RedirectTarget,
  policy: InternalRedirects,
  response: HeaderBlock,
): Former {
  const copied = policy.copiedHeaders.map((key) => [key, valuesOf(headers, key)] as const);
  const { scheme } = headers;
  const former = { authority: headers.get(HOST) ?? '', path: headers.pathText(), scheme, copied };
  for (const [key] of copied) replace(headers, key, valuesOf(response, key));
  headers.scheme = target.isHttps ? 'https' : 'http';
  headers.set(HOST, target.authority);
  headers.setTarget(target.path);
  return former;
}

function restore(headers: HeaderBlock, { authority, copied, path, scheme }: Former): void {
  for (const [key, values] of copied) replace(headers, key, values);
  headers.scheme = scheme;
  headers.set(HOST, authority);
  headers.setTarget(path);
}

function replace(headers: HeaderBlock, key: HeaderKey, values: readonly string[]): void {
  headers.remove(key);
  for (const value of values) headers.add(key, value);
}

function valuesOf(headers: HeaderBlock, key: HeaderKey): string[] {
  const values: string[] = [];
  for (let index = headers.find(key); index >= 0; index = headers.find(key, index + 1))
    values.push(headers.value(index));
  return values;
}
