// Limits of descriptors with wildcards: entries without a value match any value, and each combination of values has its own bucket.
//
// Buckets are in the memory that all workers share, which is bounded. A worker remembers a bounded number of limits that refer to
// them; a limit that was forgotten and comes back finds its bucket.

import type { LocalRateLimit, LocalRateLimitDescriptor } from '../../../../config/generated/api.js';
import { byteText } from '../../../sdk.js';
import { Limit } from './limit.js';

/** Envoy's default of max_dynamic_descriptors. */
const DEFAULT_MAX = 20;

export class DynamicLimits {
  readonly #patterns: readonly Pattern[];

  /** Returns undefined if no descriptor has a wildcard. `place`: see LimitRules. */
  static of(config: LocalRateLimit, place: string): DynamicLimits | undefined {
    const max = config.max_dynamic_descriptors ?? DEFAULT_MAX;
    const isPerConnection = config.local_rate_limit_per_downstream_connection ?? false;
    const descriptors = (config.descriptors ?? []).filter(hasWildcard);
    if (descriptors.length === 0) return undefined;
    return new DynamicLimits(
      descriptors.map((descriptor) => new Pattern(descriptor, max, (text) => [place, text], isPerConnection)),
    );
  }

  private constructor(patterns: readonly Pattern[]) {
    this.#patterns = patterns;
  }

  /** Returns the limit of a descriptor of a request: that of the first pattern it matches. `text` identifies its entries. */
  limitFor(entries: readonly string[], text: string): Limit | undefined {
    for (const pattern of this.#patterns) if (pattern.matches(entries)) return pattern.limitFor(text);
    return undefined;
  }
}

/** Returns whether a descriptor matches any value of a key. */
export function hasWildcard({ entries = [] }: LocalRateLimitDescriptor): boolean {
  return entries.some(({ value }) => !value);
}

class Pattern {
  /** Keys and values in turn, with '' for any value. */
  readonly #parts: readonly string[];
  readonly #descriptor: LocalRateLimitDescriptor;
  readonly #max: number;
  readonly #placeOf: (text: string) => unknown;
  readonly #isPerConnection: boolean;
  /** By the text of a descriptor, the least recently used first. */
  readonly #limits = new Map<string, Limit>();

  constructor(
    descriptor: LocalRateLimitDescriptor,
    max: number,
    placeOf: (text: string) => unknown,
    isPerConnection: boolean,
  ) {
    this.#parts = (descriptor.entries ?? []).flatMap(({ key, value }) => [byteText(key ?? ''), byteText(value ?? '')]);
    this.#descriptor = descriptor;
    this.#max = max;
    this.#placeOf = placeOf;
    this.#isPerConnection = isPerConnection;
  }

  /** `entries`: keys and values in turn. */
  matches(entries: readonly string[]): boolean {
    const own = this.#parts;
    if (entries.length !== own.length) return false;
    for (let index = 0; index < own.length; index++) {
      const isAny = index % 2 === 1 && own[index] === '';
      if (!isAny && own[index] !== entries[index]) return false;
    }
    return true;
  }

  limitFor(text: string): Limit {
    const known = this.#limits.get(text);
    if (known !== undefined) this.#limits.delete(text);
    else if (this.#limits.size >= this.#max) this.#limits.delete(this.#limits.keys().next().value!);
    const { shadow_mode, token_bucket } = this.#descriptor;
    const limit = known ?? new Limit(token_bucket!, this.#placeOf(text), this.#isPerConnection, shadow_mode);
    this.#limits.set(text, limit);
    return limit;
  }
}
