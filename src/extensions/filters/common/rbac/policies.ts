// envoy.config.rbac.v3.RBAC: policies, and what becomes of requests or connections that match one of them.

import type { RBAC } from '../../../../config/generated/api.js';
import type { HeaderBlock } from '../../../sdk.js';
import { compilePermissions, compilePrincipals } from './compile.js';
import type { Condition, Ends } from './conditions.js';

interface Policy {
  readonly name: string;
  readonly permission: Condition;
  readonly principal: Condition;
}

export class Policies {
  /** Requests that match go on, and no others; or the other way round. */
  readonly #allowsMatching: boolean;
  /** By name, as Envoy goes through them. */
  readonly #policies: readonly Policy[];

  /** Throws BatonError for what cannot be compiled; `where` is the configuration's path. */
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

  /** The first policy that a request matches, or a connection without `headers`; undefined: there is none. */
  match(headers: HeaderBlock | undefined, ends: Ends): string | undefined {
    for (const { name, permission, principal } of this.#policies)
      if (permission.holds(headers, ends) && principal.holds(headers, ends)) return name;
    return undefined;
  }

  /** Whether the request or connection may go on that match() has found this for. */
  allows(matched: string | undefined): boolean {
    return (matched !== undefined) === this.#allowsMatching;
  }
}

/** Of what a policy has denied, or none has allowed: how access logs name it. */
export function denialDetails(policy: string | undefined): string {
  return `rbac_access_denied_matched_policy[${(policy ?? 'none').replace(/\s/g, '_')}]`;
}
