// envoy.filters.http.rbac: allows or denies requests by policies about the request and the addresses of its connection.

import type { Any, RBACPerRoute, RbacRBAC } from '../../../../config/generated/api.js';
import {
  type HeaderBlock,
  HeadersStatus,
  type HttpFilter,
  type HttpFilterExtension,
  obeyed,
  ResponseFlag,
  refused,
  reportMistakes,
  type Scope,
  type StreamControl,
  unpack,
} from '../../../sdk.js';
import { NO_MATCHER, RULES } from '../../common/rbac/implemented.js';
import { denialDetails } from '../../common/rbac/policies.js';
import { RbacRules } from '../../common/rbac/rules.js';
import { RulesStats, ShadowStats, statsPrefix } from '../../common/rbac/stats.js';

const FILTER = 'envoy.extensions.filters.http.rbac.v3.RBAC';
const PER_ROUTE = 'envoy.extensions.filters.http.rbac.v3.RBACPerRoute';

export const rbac: HttpFilterExtension<RbacRBAC> = {
  category: 'envoy.filters.http',
  name: 'envoy.filters.http.rbac',
  typeUrls: [`type.googleapis.com/${FILTER}`, `type.googleapis.com/${PER_ROUTE}`],
  implemented: {
    [FILTER]: {
      rules: true,
      rules_stat_prefix: true,
      shadow_rules: true,
      shadow_rules_stat_prefix: true,
      matcher: NO_MATCHER,
      shadow_matcher: NO_MATCHER,
      track_per_rule_stats: refused(
        'policies are not counted individually: %RESPONSE_CODE_DETAILS% names the policy that denied the request',
      ),
    },
    [PER_ROUTE]: obeyed('rbac'),
    ...RULES,
  },
  validate(config, report) {
    const ofRoute = unpack(config as Any, PER_ROUTE);
    const given = ofRoute === undefined ? (config as RbacRBAC) : ofRoute.rbac;
    const base = ofRoute === undefined ? '' : 'rbac';
    if (given !== undefined) reportMistakes(report, base, () => new RbacRules(given, ''));
  },
  scopes: (config, chain) => [
    { prefix: statsPrefix(chain.statPrefix, config.rules_stat_prefix), layout: RulesStats },
    { prefix: statsPrefix(chain.statPrefix, config.shadow_rules_stat_prefix), layout: ShadowStats },
  ],
  createOnWorker(config, context, chain) {
    const own = new RbacRules(config, '');
    const stats = {
      rules: context.scope(statsPrefix(chain.statPrefix, config.rules_stat_prefix), RulesStats),
      shadow: context.scope(statsPrefix(chain.statPrefix, config.shadow_rules_stat_prefix), ShadowStats),
    };
    return {
      create(stream, routeConfig) {
        const rules = (routeConfig as RbacRules | undefined) ?? own;
        return rules.isEmpty ? undefined : new RbacFilter(stream, rules, stats);
      },
    };
  },
  /** The most specific configuration applies. If it is empty, the route has no rules. */
  compileRouteConfig: (configs, where) => new RbacRules((configs.at(-1) as RBACPerRoute).rbac ?? {}, `${where}.rbac`),
};

interface RbacStats {
  readonly rules: Scope;
  readonly shadow: Scope;
}

class RbacFilter implements HttpFilter {
  readonly #stream: StreamControl;
  readonly #rules: RbacRules;
  readonly #stats: RbacStats;

  constructor(stream: StreamControl, rules: RbacRules, stats: RbacStats) {
    this.#stream = stream;
    this.#rules = rules;
    this.#stats = stats;
  }

  decodeHeaders(headers: HeaderBlock): HeadersStatus {
    const { enforced, shadow } = this.#rules;
    const { info } = this.#stream;
    if (shadow !== undefined) {
      const { shadow_allowed, shadow_denied } = ShadowStats.at;
      this.#stats.shadow.increment(shadow.allows(shadow.match(headers, info)) ? shadow_allowed : shadow_denied);
    }
    if (enforced === undefined) return HeadersStatus.Continue;
    const policy = enforced.match(headers, info);
    const isAllowed = enforced.allows(policy);
    this.#stats.rules.increment(isAllowed ? RulesStats.at.allowed : RulesStats.at.denied);
    if (isAllowed) return HeadersStatus.Continue;
    this.#stream.sendLocalReply({
      status: 403,
      body: 'RBAC: access denied',
      details: denialDetails(policy),
      flags: ResponseFlag.None,
    });
    return HeadersStatus.StopIteration;
  }
}
