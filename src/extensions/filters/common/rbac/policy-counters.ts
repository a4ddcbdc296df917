// Counts the decisions of each policy (track_per_rule_stats).

import type { DynamicCounter, ThreadStats } from '../../../sdk.js';
import type { Outcome } from './engine.js';

export class PolicyCounters {
  readonly #stats: ThreadStats;
  /** Prefixes of enforced decisions and of those of shadow rules. */
  readonly #prefix: string;
  readonly #shadowPrefix: string;
  readonly #enforced = new WeakMap<Outcome, DynamicCounter>();
  readonly #shadow = new WeakMap<Outcome, DynamicCounter>();

  constructor(stats: ThreadStats, prefix: string, shadowPrefix: string) {
    this.#stats = stats;
    this.#prefix = prefix;
    this.#shadowPrefix = shadowPrefix;
  }

  countEnforced(outcome: Outcome): void {
    if (outcome.policy === undefined) return;
    let counter = this.#enforced.get(outcome);
    if (counter === undefined) this.#enforced.set(outcome, (counter = this.#counter(this.#prefix, '', outcome)));
    counter.increment();
  }

  countShadow(outcome: Outcome): void {
    if (outcome.policy === undefined) return;
    let counter = this.#shadow.get(outcome);
    if (counter === undefined)
      this.#shadow.set(outcome, (counter = this.#counter(this.#shadowPrefix, 'shadow_', outcome)));
    counter.increment();
  }

  #counter(prefix: string, kind: string, { isAllowed, policy }: Outcome): DynamicCounter {
    return this.#stats.dynamicCounter(prefix, `policy.${policy}.${kind}${isAllowed ? 'allowed' : 'denied'}`);
  }
}
