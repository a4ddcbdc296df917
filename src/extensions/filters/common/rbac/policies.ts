// A compiled envoy.config.rbac.v3.RBAC: policies, and whether matching requests or connections are allowed.

import type { RBAC } from '../../../../config/generated/api.js';
import type { HeaderBlock } from '../../../sdk.js';
import { compilePermissions, compilePrincipals } from './compile.js';
import type { Addresses, Condition } from './conditions.js';

interface Policy {
  readonly name: string;
  readonly permission: Condition;
  readonly principal: Condition;
}

export class Policies {
  /** ALLOW: only matching requests are allowed. Otherwise (DENY) only others are. */
  readonly #allowsMatching: boolean;
  /** In the order of names, as in Envoy. */
  readonly #policies: readonly Policy[];

  /** Throws a BatonError if a policy cannot be compiled. `where` is the path of the configuration. */
  constructor({ action = 'ALLOW', policies = {} }: RBAC, where: string) {
    this.#allowsMatching = action === 'ALLOW';
    this.#policies = Object.keys(policies)
      .sort()
      .map((name) => {
        const { permissions, principals } = policies[name]!;
        const path = `${where}.policies[${JSON.stringify(name)}]`;
        return {
          name,
          permission: compilePermissions(permissions, `${path}.permissions`),
          principal: compilePrincipals(principals, `${path}.principals`),
        };
      });
  }

  /** Returns the name of the first matching policy, or undefined. `headers` is undefined for a connection. */
  match(headers: HeaderBlock | undefined, addresses: Addresses): string | undefined {
    for (const { name, permission, principal } of this.#policies)
      if (permission.holds(headers, addresses) && principal.holds(headers, addresses)) return name;
    return undefined;
  }

  /** Returns whether a request or connection with this result of match() is allowed. */
  allows(matched: string | undefined): boolean {
    return (matched !== undefined) === this.#allowsMatching;
  }
}

/** Returns the details of a denial for access logs. `policy`: the policy that denied, or undefined if none allowed. */
export function denialDetails(policy: string | undefined): string {
  return `rbac_access_denied_matched_policy[${(policy ?? 'none').replace(/\s/g, '_')}]`;
}
