// internal_redirect_policy of a route, compiled: which redirects of hosts are followed instead of passed to the client.

import { BatonError, buildEach } from '../../../common/errors/errors.js';
import { type HeaderKey, headerKey, isConnectionHeader } from '../../../common/text/header-names.js';
import type { AllowListedRoutesConfig, InternalRedirectPolicy, RouteAction } from '../../../config/generated/api.js';
import { checkFieldName } from '../../headers/field-name.js';

/** What a request has followed so far. */
export interface RedirectHistory {
  /** Redirects. */
  count: number;
  /** Names of target routes, by the name of the route that redirected. */
  readonly targets: Map<string, Set<string>>;
}

/** A redirect that predicates judge. */
export interface PlannedRedirect {
  /** Names of the routes. */
  readonly from: string;
  readonly to: string;
  readonly isFromHttps: boolean;
  readonly isToHttps: boolean;
  readonly history: RedirectHistory;
}

type Predicate = (redirect: PlannedRedirect) => boolean;

export class InternalRedirects {
  readonly maxRedirects: number;
  readonly allowsCrossScheme: boolean;
  /** Fields of the response that replace those of the request. */
  readonly copiedHeaders: readonly HeaderKey[];
  readonly #statuses: ReadonlySet<number>;
  readonly #predicates: readonly Predicate[];

  /** @throws BatonError CONFIG_INVALID; `where` is the path of the policy */
  constructor(policy: InternalRedirectPolicy, where: string) {
    this.maxRedirects = policy.max_internal_redirects ?? 1;
    this.allowsCrossScheme = policy.allow_cross_scheme_redirect ?? false;
    this.copiedHeaders = buildEach(policy.response_headers_to_copy ?? [], (name, index) =>
      copiedHeader(name, `${where}.response_headers_to_copy[${index}]`),
    );
    const { redirect_response_codes: codes = [] } = policy;
    // As in Envoy, other statuses are ignored.
    this.#statuses = new Set(codes.length === 0 ? [302] : codes.filter((code) => REDIRECTS.has(code)));
    this.#predicates = buildEach(policy.predicates ?? [], ({ typed_config: config }, index) => {
      const make = PREDICATES[config?.['@type'].split('/').at(-1) ?? ''];
      if (make !== undefined) return make(config);
      const message = `there is no predicate '${config?.['@type']}'`;
      throw new BatonError('CONFIG_INVALID', message, { where: `${where}.predicates[${index}]` });
    });
  }

  /** Returns undefined for a route that follows none. The deprecated fields apply to routes without the policy. */
  static of(action: RouteAction, where: string): InternalRedirects | undefined {
    const policy = action.internal_redirect_policy;
    if (policy !== undefined) return new InternalRedirects(policy, `${where}.internal_redirect_policy`);
    if (action.internal_redirect_action !== 'HANDLE_INTERNAL_REDIRECT') return undefined;
    return new InternalRedirects({ max_internal_redirects: action.max_internal_redirects }, where);
  }

  handles(status: number): boolean {
    return this.#statuses.has(status);
  }

  /** Returns whether all predicates accept the redirect. They record it in its history. */
  accepts(redirect: PlannedRedirect): boolean {
    return this.#predicates.every((accepts) => accepts(redirect));
  }
}

const REDIRECTS: ReadonlySet<number> = new Set([301, 302, 303, 307, 308]);

const PACKAGE = 'envoy.extensions.internal_redirect';

const PREDICATES: Readonly<Record<string, (config: unknown) => Predicate>> = {
  /** A route may redirect to each other route once. */
  [`${PACKAGE}.previous_routes.v3.PreviousRoutesConfig`]:
    () =>
    ({ from, history, to }) => {
      let targets = history.targets.get(from);
      if (targets === undefined) history.targets.set(from, (targets = new Set()));
      if (targets.has(to)) return false;
      targets.add(to);
      return true;
    },
  [`${PACKAGE}.allow_listed_routes.v3.AllowListedRoutesConfig`]: (config) => {
    const names = new Set((config as AllowListedRoutesConfig).allowed_route_names);
    return ({ to }) => names.has(to);
  },
  /** Requests without TLS do not become ones with TLS. */
  [`${PACKAGE}.safe_cross_scheme.v3.SafeCrossSchemeConfig`]:
    () =>
    ({ isFromHttps, isToHttps }) =>
      isFromHttps || !isToHttps,
};

function copiedHeader(name: string, where: string): HeaderKey {
  const refuse = (owner: string) =>
    new BatonError('CONFIG_INVALID', `'${name}' belongs to ${owner} and cannot be copied`, { where });
  if (name.startsWith(':') || name.toLowerCase() === 'host') throw refuse('the target of a redirect');
  checkFieldName(name, where);
  const key = headerKey(name);
  // A copied Content-Length would frame the body of the request.
  if (isConnectionHeader(key.id)) throw refuse('the response and its connection');
  return key;
}
