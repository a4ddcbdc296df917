// envoy.filters.http.rbac: allows or denies requests by policies about the request and the addresses of its connection.

import type { Any, RBACPerRoute, RbacRBAC } from '../../../../config/generated/api.js';
import {
  type HeaderBlock,
  HeadersStatus,
  type HttpFilter,
  type HttpFilterExtension,
  obeyed,
  ResponseFlag,
  reportMistakes,
  type Scope,
  type StreamControl,
  type ThreadStats,
  unpack,
} from '../../../sdk.js';
import { denialDetails } from '../../common/rbac/engine.js';
import { RULES } from '../../common/rbac/implemented.js';
import { PolicyCounters } from '../../common/rbac/policy-counters.js';
import { RbacRules } from '../../common/rbac/rules.js';
import { RulesStats, ShadowStats, statsPrefix } from '../../common/rbac/stats.js';

const FILTER = 'envoy.extensions.filters.http.rbac.v3.RBAC';
const PER_ROUTE = 'envoy.extensions.filters.http.rbac.v3.RBACPerRoute';

export const rbac: HttpFilterExtension<RbacRBAC> = {
  category: 'envoy.filters.http',
  name: 'envoy.filters.http.rbac',
  runsUpstream: true,
  typeUrls: [`type.googleapis.com/${FILTER}`, `type.googleapis.com/${PER_ROUTE}`],
  implemented: {
    [FILTER]: {
      rules: true,
      rules_stat_prefix: true,
      shadow_rules: true,
      shadow_rules_stat_prefix: true,
      matcher: true,
      shadow_matcher: true,
      track_per_rule_stats: true,
    },
    [PER_ROUTE]: obeyed('rbac'),
    ...RULES,
  },
  validate(config, report) {
    const ofRoute = unpack(config as Any, PER_ROUTE);
    const given = ofRoute === undefined ? (config as RbacRBAC) : ofRoute.rbac;
    const base = ofRoute === undefined ? '' : 'rbac';
    if (given !== undefined) reportMistakes(report, base, () => new RbacRules(given, '', true));
  },
  scopes: (config, chain) => [
    { prefix: statsPrefix(chain.statPrefix, config.rules_stat_prefix), layout: RulesStats },
    { prefix: statsPrefix(chain.statPrefix, config.shadow_rules_stat_prefix), layout: ShadowStats },
  ],
  createOnWorker(config, context, chain) {
    const own = new RbacRules(config, '', true);
    const prefix = statsPrefix(chain.statPrefix, config.rules_stat_prefix);
    const shadowPrefix = statsPrefix(chain.statPrefix, config.shadow_rules_stat_prefix);
    const stats: Reporting = {
      thread: context.stats,
      rules: context.scope(prefix, RulesStats),
      shadow: context.scope(shadowPrefix, ShadowStats),
      policies:
        config.track_per_rule_stats === true ? new PolicyCounters(context.stats, prefix, shadowPrefix) : undefined,
      keyPrefix: `${config.rules_stat_prefix ?? ''}enforced_`,
      shadowKeyPrefix: `${config.shadow_rules_stat_prefix ?? ''}shadow_`,
    };
    return {
      create(stream, routeConfig) {
        const rules = (routeConfig as RbacRules | undefined) ?? own;
        return rules.isEmpty ? undefined : new RbacFilter(stream, rules, stats);
      },
    };
  },
  /** The most specific configuration applies. If it is empty, the route has no rules. */
  compileRouteConfig: (configs, where) =>
    new RbacRules((configs.at(-1) as RBACPerRoute).rbac ?? {}, `${where}.rbac`, true),
};

/** Where decisions are counted and recorded. */
interface Reporting {
  readonly thread: ThreadStats;
  readonly rules: Scope;
  readonly shadow: Scope;
  /** Undefined: policies are not counted one by one. */
  readonly policies: PolicyCounters | undefined;
  /** Prefixes of keys of the dynamic metadata. */
  readonly keyPrefix: string;
  readonly shadowKeyPrefix: string;
}

const METADATA = 'envoy.filters.http.rbac';
/** For all filters and logs. */
const COMMON_METADATA = 'envoy.common';
const LOGGED = { access_log_hint: true };
const NOT_LOGGED = { access_log_hint: false };

class RbacFilter implements HttpFilter {
  readonly #stream: StreamControl;
  readonly #rules: RbacRules;
  readonly #stats: Reporting;

  constructor(stream: StreamControl, rules: RbacRules, stats: Reporting) {
    this.#stream = stream;
    this.#rules = rules;
    this.#stats = stats;
  }

  decodeHeaders(headers: HeaderBlock): HeadersStatus {
    this.#observe(headers);
    const { enforced } = this.#rules;
    if (enforced === undefined) return HeadersStatus.Continue;
    const { info } = this.#stream;
    const { keyPrefix, policies, rules } = this.#stats;
    const outcome = enforced.decide(headers, info, this.#stats.thread);
    rules.increment(outcome.isAllowed ? RulesStats.at.allowed : RulesStats.at.denied);
    policies?.countEnforced(outcome);
    const metadata = info.ownDynamicMetadata();
    metadata.merge(METADATA, outcome.metadata(keyPrefix));
    if (outcome.isLogged !== undefined) metadata.merge(COMMON_METADATA, outcome.isLogged ? LOGGED : NOT_LOGGED);
    if (outcome.isAllowed) return HeadersStatus.Continue;
    this.#stream.sendLocalReply({
      status: 403,
      body: 'RBAC: access denied',
      details: denialDetails(outcome.policy),
      flags: ResponseFlag.None,
    });
    return HeadersStatus.StopIteration;
  }

  /** Records what the shadow rules decide. */
  #observe(headers: HeaderBlock): void {
    const outcome = this.#rules.shadow?.decide(headers, this.#stream.info, this.#stats.thread);
    if (outcome === undefined) return;
    const { policies, shadow, shadowKeyPrefix } = this.#stats;
    const { shadow_allowed, shadow_denied } = ShadowStats.at;
    shadow.increment(outcome.isAllowed ? shadow_allowed : shadow_denied);
    policies?.countShadow(outcome);
    this.#stream.info.ownDynamicMetadata().merge(METADATA, outcome.metadata(shadowKeyPrefix));
  }
}
