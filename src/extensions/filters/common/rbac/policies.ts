// A compiled envoy.config.rbac.v3.RBAC: policies, and whether matching requests or connections are allowed.

import type { RBAC } from '../../../../config/generated/api.js';
import type { HeaderBlock } from '../../../sdk.js';
import { compilePermissions, compilePrincipals } from './compile.js';
import type { Addresses, Condition } from './conditions.js';
import { type Engine, Outcome } from './engine.js';

interface Policy {
  readonly outcome: Outcome;
  readonly permission: Condition;
  readonly principal: Condition;
}

export class Policies implements Engine {
  /** The outcome for requests and connections that no policy matches. */
  readonly #otherwise: Outcome;
  /** In the order of names, as in Envoy. */
  readonly #policies: readonly Policy[];

  /** Throws a BatonError if a policy cannot be compiled. `where` is the path of the configuration. */
  constructor({ action = 'ALLOW', policies = {} }: RBAC, where: string) {
    this.#otherwise = new Outcome(action !== 'ALLOW', undefined, action === 'LOG' ? false : undefined);
    this.#policies = Object.keys(policies)
      .sort()
      .map((name) => {
        const { permissions, principals } = policies[name]!;
        const path = `${where}.policies[${JSON.stringify(name)}]`;
        return {
          outcome: new Outcome(action !== 'DENY', name, action === 'LOG' ? true : undefined),
          permission: compilePermissions(permissions, `${path}.permissions`),
          principal: compilePrincipals(principals, `${path}.principals`),
        };
      });
  }

  /** The first matching policy decides. */
  decide(headers: HeaderBlock | undefined, addresses: Addresses): Outcome {
    for (const { outcome, permission, principal } of this.#policies)
      if (permission.holds(headers, addresses) && principal.holds(headers, addresses)) return outcome;
    return this.#otherwise;
  }
}
