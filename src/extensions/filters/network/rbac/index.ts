// envoy.filters.network.rbac: allows or denies connections by policies about their addresses.

import type { NetworkRbacRBAC, Permission, Principal, RBAC } from '../../../../config/generated/api.js';
import {
  byValue,
  durationMs,
  FilterClose,
  type FilteredClient,
  FilterStatus,
  MAX_TIMER_MS,
  type NetworkFilter,
  type NetworkFilterExtension,
  type Report,
  reportMistakes,
  type Scope,
  type ThreadStats,
} from '../../../sdk.js';
import type { Addresses } from '../../common/rbac/conditions.js';
import { denialDetails, type Outcome } from '../../common/rbac/engine.js';
import { RULES } from '../../common/rbac/implemented.js';
import { RbacRules } from '../../common/rbac/rules.js';
import { RulesStats, ShadowStats, statsPrefix } from '../../common/rbac/stats.js';

const FILTER = 'envoy.extensions.filters.network.rbac.v3.RBAC';

export const networkRbac: NetworkFilterExtension<NetworkRbacRBAC> = {
  category: 'envoy.filters.network',
  name: 'envoy.filters.network.rbac',
  typeUrls: [`type.googleapis.com/${FILTER}`],
  implemented: {
    [FILTER]: {
      rules: true,
      shadow_rules: true,
      shadow_rules_stat_prefix: true,
      stat_prefix: true,
      enforcement_type: byValue({ ONE_TIME_ON_FIRST_BYTE: true, CONTINUOUS: true }),
      delay_deny: true,
      matcher: true,
      shadow_matcher: true,
    },
    ...RULES,
  },
  validate(config, report) {
    for (const field of ['rules', 'shadow_rules'] as const) reportHeaders(config[field], field, report);
    reportMistakes(report, '', () => new RbacRules(config, '', false));
  },
  scopes: (config) => [
    { prefix: statsPrefix(config.stat_prefix!), layout: RulesStats },
    { prefix: shadowPrefix(config), layout: ShadowStats },
  ],
  createOnWorker(config, _chain, context) {
    const settings: Settings = {
      rules: new RbacRules(config, '', false),
      thread: context.stats,
      stats: context.scope(statsPrefix(config.stat_prefix!), RulesStats),
      shadowStats: context.scope(shadowPrefix(config), ShadowStats),
      isContinuous: config.enforcement_type === 'CONTINUOUS',
      delayMs: Math.min(MAX_TIMER_MS, durationMs(config.delay_deny, 0)),
    };
    return { create: (client) => (settings.rules.isEmpty ? undefined : new RbacFilter(client, settings)) };
  },
};

function shadowPrefix({ shadow_rules_stat_prefix: own, stat_prefix: base = '' }: NetworkRbacRBAC): string {
  return statsPrefix(base, own);
}

/** Reports header conditions at any depth, which Envoy refuses. A path condition is accepted and never holds for a connection. */
function reportHeaders({ policies = {} }: RBAC = {}, where: string, report: Report): void {
  for (const [name, { permissions, principals, ...expressions }] of Object.entries(policies)) {
    const path = `${where}.policies[${JSON.stringify(name)}]`;
    for (const field of ['condition', 'checked_condition'] as const)
      if (expressions[field] !== undefined)
        report(`${path}.${field}`, 'expressions about connections are not implemented: use permissions and principals');
    reportIn(permissions, `${path}.permissions`, report);
    reportIn(principals, `${path}.principals`, report);
  }
}

function reportIn(list: readonly (Permission | Principal)[] = [], where: string, report: Report): void {
  for (const [index, each] of list.entries()) reportOne(each, `${where}[${index}]`, report);
}

function reportOne(one: Permission & Principal, where: string, report: Report): void {
  if (one.header !== undefined) report(`${where}.header`, 'a connection has no headers: use envoy.filters.http.rbac');
  reportIn(one.and_rules?.rules, `${where}.and_rules.rules`, report);
  reportIn(one.or_rules?.rules, `${where}.or_rules.rules`, report);
  reportIn(one.and_ids?.ids, `${where}.and_ids.ids`, report);
  reportIn(one.or_ids?.ids, `${where}.or_ids.ids`, report);
  if (one.not_rule !== undefined) reportOne(one.not_rule, `${where}.not_rule`, report);
  if (one.not_id !== undefined) reportOne(one.not_id, `${where}.not_id`, report);
}

interface Settings {
  readonly rules: RbacRules;
  readonly thread: ThreadStats;
  readonly stats: Scope;
  readonly shadowStats: Scope;
  /** Every receive event is counted, not only the first. */
  readonly isContinuous: boolean;
  /** Delay before a denied connection is closed. */
  readonly delayMs: number;
}

class RbacFilter implements NetworkFilter {
  readonly #client: FilteredClient;
  readonly #settings: Settings;
  #isDecided = false;
  /** The decisions. They are made once, unless filters set metadata: addresses do not change. Undefined: there are no rules. */
  #shadow: Outcome | undefined;
  #enforced: Outcome | undefined;

  constructor(client: FilteredClient, settings: Settings) {
    this.#client = client;
    this.#settings = settings;
  }

  /** As in Envoy, nothing is decided before the first byte: with a TCP proxy, the host is connected before that and may send. */
  onNewConnection(): FilterStatus {
    return FilterStatus.Continue;
  }

  onData(): FilterStatus {
    const { delayMs, isContinuous } = this.#settings;
    if (this.#isDecided && !isContinuous) return FilterStatus.Continue;
    if (!this.#isDecided || this.#client.dynamicMetadata !== undefined) this.#decide();
    this.#count();
    if (this.#enforced?.isAllowed !== false) return FilterStatus.Continue;
    this.#client.close(FilterClose.NoFlush, denialDetails(this.#enforced.policy), delayMs);
    return FilterStatus.Stop;
  }

  #decide(): void {
    const { rules, thread } = this.#settings;
    const { enforced, shadow } = rules;
    const addresses = new ClientAddresses(this.#client);
    this.#isDecided = true;
    this.#shadow = shadow?.decide(undefined, addresses, thread);
    this.#enforced = enforced?.decide(undefined, addresses, thread);
  }

  #count(): void {
    const { shadowStats, stats } = this.#settings;
    const { shadow_allowed, shadow_denied } = ShadowStats.at;
    if (this.#shadow !== undefined) shadowStats.increment(this.#shadow.isAllowed ? shadow_allowed : shadow_denied);
    const { allowed, denied } = RulesStats.at;
    if (this.#enforced !== undefined) stats.increment(this.#enforced.isAllowed ? allowed : denied);
  }
}

class ClientAddresses implements Addresses {
  readonly downstream: FilteredClient;
  readonly route = undefined;

  constructor(client: FilteredClient) {
    this.downstream = client;
  }

  get filterState(): FilteredClient['filterState'] {
    return this.downstream.filterState;
  }

  get dynamicMetadata(): FilteredClient['dynamicMetadata'] {
    return this.downstream.dynamicMetadata;
  }
  get downstreamRemoteAddress(): string {
    return this.downstream.remoteText;
  }
  get downstreamDirectRemoteAddress(): string {
    return this.downstream.directRemoteText;
  }
  get downstreamLocalAddress(): string {
    return this.downstream.localText;
  }
}
