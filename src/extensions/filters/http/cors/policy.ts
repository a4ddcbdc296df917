// A compiled CorsPolicy, merged from route configuration, virtual host, route and weighted cluster.

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

/** An empty text means that the header is not sent. Texts have one character per byte. */
export interface CorsPolicy {
  /** The fraction of requests for which the policy is enforced. */
  readonly enabled: RuntimeFraction;
  /** The fraction of the other requests whose origin is counted. */
  readonly shadow: RuntimeFraction;
  readonly origins: AllowedOrigins;
  readonly allowMethods: string;
  readonly allowHeaders: string;
  readonly exposeHeaders: string;
  readonly maxAge: string;
  readonly allowsCredentials: boolean;
  readonly allowsPrivateNetwork: boolean;
  /** Preflights of origins that are not allowed are forwarded to hosts. */
  readonly forwardsNotMatching: boolean;
}

/**
 * Merges and compiles policies. As in Envoy, each field comes from the most specific policy that sets it, except for the
 * fractions, which always come from the most specific policy.
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

/** A compiled allow_origin_string_match. */
export class AllowedOrigins {
  /** By the configured list: routes that inherit the list of their virtual host share the compiled object. */
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

  /** Returns whether the origin of this request is allowed. The request must have one. */
  allow(request: HeaderBlock): boolean {
    return this.#isAny || matchesAny(this.#rules, request);
  }
}

const NO_ORIGINS: readonly StringMatcher[] = [];

/**
 * Returns whether a matcher allows every origin: as in Envoy, one that matches `*`. The API allows an empty text only for
 * `exact`.
 */
function matchesStar({ contains, exact, prefix, safe_regex: regex, suffix }: StringMatcher): boolean {
  if (regex !== undefined) return compileFullMatch(regex.regex ?? '').test('*');
  return (exact ?? prefix ?? suffix ?? contains) === '*';
}
