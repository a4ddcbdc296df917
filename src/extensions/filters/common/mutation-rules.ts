// envoy.config.common.mutation_rules.v3.HeaderMutationRules: which header fields of a request a service may change.

import type { HeaderMutationRules } from '../../../config/generated/api.js';
import { BatonError, compileFullMatch, type ImplementedTable, messageOf, obeyed } from '../../sdk.js';

export const MUTATION_RULES = {
  'envoy.config.common.mutation_rules.v3.HeaderMutationRules': obeyed(
    'allow_all_routing',
    'allow_envoy',
    'disallow_system',
    'disallow_all',
    'allow_expression',
    'disallow_expression',
    'disallow_is_error',
  ),
} satisfies ImplementedTable;

export const enum Verdict {
  Allowed = 0,
  /** The change is left out. */
  Ignored = 1,
  /** The answer with the change is an error. */
  Error = 2,
}

/** Fields that decide about the route, unless a rule is more specific. */
const ROUTING = new Set([':authority', ':method', ':scheme', 'host']);

export class MutationRules {
  readonly #config: HeaderMutationRules;
  readonly #allowed: RegExp | undefined;
  readonly #disallowed: RegExp | undefined;

  /** `where`: the path of the rules. Throws a BatonError CONFIG_INVALID for an invalid expression. */
  constructor(config: HeaderMutationRules, where: string) {
    this.#config = config;
    this.#allowed = expression(config.allow_expression?.regex, `${where}.allow_expression.regex`);
    this.#disallowed = expression(config.disallow_expression?.regex, `${where}.disallow_expression.regex`);
  }

  /** Decides about the change of a field. `name` is in lower case. */
  check(name: string, isRemoval: boolean): Verdict {
    if (this.#allows(name, isRemoval)) return Verdict.Allowed;
    return this.#config.disallow_is_error === true ? Verdict.Error : Verdict.Ignored;
  }

  #allows(name: string, isRemoval: boolean): boolean {
    const { allow_all_routing, allow_envoy, disallow_all, disallow_system } = this.#config;
    const isSystem = name.startsWith(':');
    if (isRemoval && (isSystem || name === 'host')) return false;
    if (this.#allowed?.test(name) === true) return true;
    if (this.#disallowed?.test(name) === true || disallow_all === true) return false;
    if (disallow_system === true && isSystem) return false;
    if (ROUTING.has(name)) return allow_all_routing === true;
    return allow_envoy === true || !name.startsWith('x-envoy-');
  }
}

function expression(pattern: string | undefined, where: string): RegExp | undefined {
  if (pattern === undefined) return undefined;
  try {
    return compileFullMatch(pattern);
  } catch (error) {
    throw new BatonError('CONFIG_INVALID', messageOf(error), { where, cause: error });
  }
}
