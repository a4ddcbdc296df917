// The enforced rules and the shadow rules of an RBAC filter.

import type { MatcherMatcher, RBAC } from '../../../../config/generated/api.js';
import type { Engine } from './engine.js';
import { MatcherEngine } from './matcher-engine.js';
import { Policies } from './policies.js';

/** The common fields of the messages of both filters. */
export interface RulesConfig {
  readonly rules?: RBAC;
  readonly matcher?: MatcherMatcher;
  readonly shadow_rules?: RBAC;
  readonly shadow_matcher?: MatcherMatcher;
}

export class RbacRules {
  readonly enforced: Engine | undefined;
  readonly shadow: Engine | undefined;

  /** `isHttp`: of requests. Throws a BatonError if a rule cannot be compiled. */
  constructor(config: RulesConfig, where: string, isHttp: boolean) {
    const at = (field: string) => (where === '' ? field : `${where}.${field}`);
    const { matcher, rules, shadow_matcher, shadow_rules } = config;
    // As in Envoy, policies beside a matcher are ignored.
    this.enforced =
      (matcher && new MatcherEngine(matcher, at('matcher'), isHttp)) ?? (rules && new Policies(rules, at('rules')));
    this.shadow =
      (shadow_matcher && new MatcherEngine(shadow_matcher, at('shadow_matcher'), isHttp)) ??
      (shadow_rules && new Policies(shadow_rules, at('shadow_rules')));
  }

  get isEmpty(): boolean {
    return this.enforced === undefined && this.shadow === undefined;
  }
}
