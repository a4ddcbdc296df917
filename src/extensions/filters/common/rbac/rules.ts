// The enforced rules and the shadow rules of an RBAC filter.

import type { RBAC } from '../../../../config/generated/api.js';
import { Policies } from './policies.js';

/** The common fields of the messages of both filters. */
export interface RulesConfig {
  readonly rules?: RBAC;
  readonly shadow_rules?: RBAC;
}

export class RbacRules {
  readonly enforced: Policies | undefined;
  readonly shadow: Policies | undefined;

  /** Throws a BatonError if a rule cannot be compiled. */
  constructor({ rules, shadow_rules: shadow }: RulesConfig, where: string) {
    const at = (field: string) => (where === '' ? field : `${where}.${field}`);
    this.enforced = rules && new Policies(rules, at('rules'));
    this.shadow = shadow && new Policies(shadow, at('shadow_rules'));
  }

  get isEmpty(): boolean {
    return this.enforced === undefined && this.shadow === undefined;
  }
}
