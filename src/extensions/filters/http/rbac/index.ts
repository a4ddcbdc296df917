// envoy.filters.http.rbac: who may do what, by policies over the request and the addresses of its connection.

import type { Any, RBACPerRoute, RbacRBAC } from '../../../../config/generated/api.js';
import {
  byValue,
  defineLayout,
  type HeaderBlock,
  HeadersStatus,
  type HttpChain,
  type HttpFilter,
  type HttpFilterExtension,
  notImplemented,
  obeyed,
  ResponseFlag,
  refused,
  reportMistakes,
  type Scope,
  type StreamControl,
  unpack,
} from '../../../sdk.js';
import { Policies } from './policies.js';

const FILTER = 'envoy.extensions.filters.http.rbac.v3.RBAC';
const PER_ROUTE = 'envoy.extensions.filters.http.rbac.v3.RBACPerRoute';
const NO_TLS = refused('connections have no TLS of which anything could be asked');
const NO_METADATA = refused('requests have no dynamic metadata and no filter state');
const NO_EXPRESSIONS = 'expressions are not implemented: use permissions and principals';
const NO_MATCHER = refused('use rules, with policies');

const RulesStats = defineLayout({ allowed: 'counter', denied: 'counter' });
const ShadowStats = defineLayout({ shadow_allowed: 'counter', shadow_denied: 'counter' });

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
        'policies are not counted one by one: %RESPONSE_CODE_DETAILS% names the one that denies',
      ),
    },
    [PER_ROUTE]: obeyed('rbac'),
    'envoy.config.rbac.v3.RBAC': {
      // LOG does nothing but set dynamic metadata.
      action: byValue({ ALLOW: true, DENY: true, LOG: false }),
      policies: true,
      ...notImplemented('audit_logging_options'),
    },
    'envoy.config.rbac.v3.Policy': {
      permissions: true,
      principals: true,
      ...notImplemented('condition', 'checked_condition'),
      cel_config: refused(NO_EXPRESSIONS),
    },
    'envoy.config.rbac.v3.Permission': {
      and_rules: true,
      or_rules: true,
      any: true,
      header: true,
      url_path: true,
      destination_ip: true,
      destination_port: true,
      destination_port_range: true,
      not_rule: true,
      metadata: NO_METADATA,
      requested_server_name: NO_TLS,
      ...notImplemented('matcher', 'uri_template'),
      sourced_metadata: NO_METADATA,
    },
    'envoy.config.rbac.v3.Permission.Set': obeyed('rules'),
    'envoy.config.rbac.v3.Principal': {
      and_ids: true,
      or_ids: true,
      any: true,
      source_ip: true,
      direct_remote_ip: true,
      remote_ip: true,
      header: true,
      url_path: true,
      not_id: true,
      authenticated: NO_TLS,
      metadata: NO_METADATA,
      filter_state: NO_METADATA,
      sourced_metadata: NO_METADATA,
      custom: refused('there is no such extension: use the principals that there are'),
    },
    'envoy.config.rbac.v3.Principal.Set': obeyed('ids'),
    'envoy.type.matcher.v3.PathMatcher': obeyed('path'),
    'envoy.type.v3.Int32Range': obeyed('start', 'end'),
  },
  validate(config, report) {
    const ofRoute = unpack(config as Any, PER_ROUTE);
    const given = ofRoute === undefined ? (config as RbacRBAC) : ofRoute.rbac;
    const base = ofRoute === undefined ? '' : 'rbac';
    if (given !== undefined) reportMistakes(report, base, () => new RbacRules(given, ''));
  },
  scopes: (config, chain) => [
    { prefix: statsPrefix(chain, config.rules_stat_prefix), layout: RulesStats },
    { prefix: statsPrefix(chain, config.shadow_rules_stat_prefix), layout: ShadowStats },
  ],
  createOnWorker(config, context, chain) {
    const own = new RbacRules(config, '');
    const stats = {
      rules: context.scope(statsPrefix(chain, config.rules_stat_prefix), RulesStats),
      shadow: context.scope(statsPrefix(chain, config.shadow_rules_stat_prefix), ShadowStats),
    };
    return {
      create(stream, routeConfig) {
        const rules = (routeConfig as RbacRules | undefined) ?? own;
        return rules.isEmpty ? undefined : new RbacFilter(stream, rules, stats);
      },
    };
  },
  /** The most specific place decides. Without rules there the route has none. */
  compileRouteConfig: (configs, where) => new RbacRules((configs.at(-1) as RBACPerRoute).rbac ?? {}, `${where}.rbac`),
};

function statsPrefix({ statPrefix }: HttpChain, own = ''): string {
  const prefix = `${statPrefix}rbac.`;
  return own === '' || own.endsWith('.') ? prefix + own : `${prefix}${own}.`;
}

/** What is enforced, and what is only counted. */
class RbacRules {
  readonly enforced: Policies | undefined;
  readonly shadow: Policies | undefined;

  /** Throws BatonError for what cannot be compiled. */
  constructor({ rules, shadow_rules: shadow }: RbacRBAC, where: string) {
    const at = (field: string) => (where === '' ? field : `${where}.${field}`);
    this.enforced = rules && new Policies(rules, at('rules'));
    this.shadow = shadow && new Policies(shadow, at('shadow_rules'));
  }

  get isEmpty(): boolean {
    return this.enforced === undefined && this.shadow === undefined;
  }
}

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
      details: `rbac_access_denied_matched_policy[${(policy ?? 'none').replace(/\s/g, '_')}]`,
      flags: ResponseFlag.None,
    });
    return HeadersStatus.StopIteration;
  }
}
