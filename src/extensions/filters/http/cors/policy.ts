// CorsPolicy: what route configuration, virtual host, route and weighted cluster say together, compiled.

import type { CorsCorsPolicy as PolicyConfig, StringMatcher } from '../../../../config/generated/api.js';
import {
  byteText,
  compileFullMatch,
  compileHeaderRules,
  type HeaderBlock,
  type HeaderRule,
  matchesAny,
  type Runtime,
  type RuntimeFraction,
} from '../../../sdk.js';

/** Of texts '' is none: the header is not sent. They have one character a byte. */
export interface CorsPolicy {
  /** The share of requests for which the policy is enforced. */
  readonly enabled: RuntimeFraction;
  /** The share of the others whose origin is only counted. */
  readonly shadow: RuntimeFraction;
  readonly origins: AllowedOrigins;
  readonly allowMethods: string;
  readonly allowHeaders: string;
  readonly exposeHeaders: string;
  readonly maxAge: string;
  readonly allowsCredentials: boolean;
  readonly allowsPrivateNetwork: boolean;
  /** Hosts answer preflights of origins that are not allowed. */
  readonly forwardsNotMatching: boolean;
}

/**
 * As in Envoy each field is that of the most specific place that sets it, but for the shares: they are those of the most specific place
 * that has a policy, whether it sets them or not.
 * @param configs the most general first
 */
export function compilePolicy(configs: readonly PolicyConfig[], runtime: Runtime): CorsPolicy {
  const { filter_enabled: enabled, shadow_enabled: shadow } = configs.at(-1)!;
  const merged: PolicyConfig = Object.assign({}, ...configs);
  return {
    enabled: runtime.fractionOf(enabled, { numerator: 100 }),
    shadow: runtime.fractionOf(shadow, { numerator: 0 }),
    origins: AllowedOrigins.of(merged.allow_origin_string_match ?? NO_ORIGINS),
    allowMethods: byteText(merged.allow_methods ?? ''),
    allowHeaders: byteText(merged.allow_headers ?? ''),
    exposeHeaders: byteText(merged.expose_headers ?? ''),
    maxAge: byteText(merged.max_age ?? ''),
    allowsCredentials: merged.allow_credentials ?? false,
    allowsPrivateNetwork: merged.allow_private_network_access ?? false,
    forwardsNotMatching: merged.forward_not_matching_preflights ?? true,
  };
}

/** allow_origin_string_match. */
export class AllowedOrigins {
  /** By the list as configured: all routes of a virtual host have the one that it gives them. */
  static readonly #known = new WeakMap<readonly StringMatcher[], AllowedOrigins>();
  readonly #isAny: boolean;
  readonly #rules: readonly HeaderRule[];

  private constructor(matchers: readonly StringMatcher[]) {
    this.#isAny = matchers.some(matchesStar);
    const rules = matchers.map((string_match) => ({ name: 'origin', string_match }));
    this.#rules = compileHeaderRules(rules, 'allow_origin_string_match') ?? [];
  }

  static of(matchers: readonly StringMatcher[]): AllowedOrigins {
    let origins = AllowedOrigins.#known.get(matchers);
    if (origins === undefined) AllowedOrigins.#known.set(matchers, (origins = new AllowedOrigins(matchers)));
    return origins;
  }

  /** Whether the origin of this request, which has one, is allowed. */
  allow(request: HeaderBlock): boolean {
    return this.#isAny || matchesAny(this.#rules, request);
  }
}

const NO_ORIGINS: readonly StringMatcher[] = [];

/** As in Envoy a matcher that would match an origin `*` allows every one. The API lets no text be empty but an exact one. */
function matchesStar({ contains, exact, prefix, safe_regex: regex, suffix }: StringMatcher): boolean {
  if (regex !== undefined) return compileFullMatch(regex.regex ?? '').test('*');
  return (exact ?? prefix ?? suffix ?? contains) === '*';
}
