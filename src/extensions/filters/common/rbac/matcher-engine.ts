// Decisions by a matcher, whose actions allow or deny.

import type { Action, Any, MatcherMatcher } from '../../../../config/generated/api.js';
import { BatonError, type HeaderBlock, type ThreadStats } from '../../../sdk.js';
import { compileMatcher, type MatchTree } from '../matching/matcher.js';
import type { Addresses } from './conditions.js';
import { type Engine, Outcome } from './engine.js';

export class MatcherEngine implements Engine {
  readonly #tree: MatchTree<Outcome>;
  /** As in Envoy, what nothing matches is denied. */
  readonly #otherwise: Outcome;

  /** `isHttp`: it decides about requests. Throws a BatonError if the matcher cannot be compiled; `where`: its path. */
  constructor(config: MatcherMatcher, where: string, isHttp: boolean) {
    const hasLog = JSON.stringify(config).includes('"action":"LOG"');
    const hint = (isLogged: boolean) => (hasLog ? isLogged : undefined);
    this.#otherwise = new Outcome(false, undefined, hint(false));
    this.#tree = compileMatcher(config, where, {
      isHttp,
      action(any: Any, at: string) {
        if (!any['@type'].endsWith('/envoy.config.rbac.v3.Action'))
          throw new BatonError('CONFIG_INVALID', 'the action is an envoy.config.rbac.v3.Action', { where: at });
        const { action = 'ALLOW', name } = any as unknown as Action;
        return new Outcome(action !== 'DENY', name, hint(action === 'LOG'));
      },
    });
  }

  decide(headers: HeaderBlock | undefined, info: Addresses, stats?: ThreadStats): Outcome {
    return this.#tree.find({ headers, info, stats }) ?? this.#otherwise;
  }
}
