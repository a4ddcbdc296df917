// A compiled envoy.config.rbac.v3.RBAC: policies, and whether matching requests or connections are allowed.

import type { Policy, RBAC } from '../../../../config/generated/api.js';
import {
  BatonError,
  expressionOfExpr,
  type HeaderBlock,
  messageOf,
  type StreamExpression,
  type StreamInfo,
} from '../../../sdk.js';
import { compilePermissions, compilePrincipals } from './compile.js';
import type { Addresses, Condition } from './conditions.js';
import { type Engine, Outcome } from './engine.js';

interface CompiledPolicy {
  readonly outcome: Outcome;
  readonly permission: Condition;
  readonly principal: Condition;
  /** Undefined: there is no condition. */
  readonly expression: StreamExpression | undefined;
}

export class Policies implements Engine {
  /** The outcome for requests and connections that no policy matches. */
  readonly #otherwise: Outcome;
  /** In the order of names, as in Envoy. */
  readonly #policies: readonly CompiledPolicy[];

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
          expression: compileCondition(policies[name]!, path),
        };
      });
  }

  /** The first matching policy decides. */
  decide(headers: HeaderBlock | undefined, addresses: Addresses): Outcome {
    for (const { expression, outcome, permission, principal } of this.#policies) {
      if (!permission.holds(headers, addresses) || !principal.holds(headers, addresses)) continue;
      // Only the HTTP filter, which passes the whole stream, has expressions. As in Envoy, an error is not true.
      if (expression === undefined || expression.evaluate(addresses as StreamInfo) === true) return outcome;
    }
    return this.#otherwise;
  }
}

function compileCondition({ cel_config, checked_condition: checked, condition }: Policy, where: string) {
  const message = condition ?? checked?.expr;
  if (condition === undefined && checked === undefined) return undefined;
  try {
    return expressionOfExpr(message, cel_config);
  } catch (error) {
    const field = condition === undefined ? 'checked_condition' : 'condition';
    throw new BatonError('CONFIG_INVALID', messageOf(error), { where: `${where}.${field}`, cause: error });
  }
}
