// The header_to_metadata filter of one request.

import { type HeaderBlock, HeadersStatus, type HttpFilter, type Json, type StreamControl } from '../../../sdk.js';
import type { CompiledRule, Rules } from './rules.js';
import { type DirectionCounters, REQUEST, RESPONSE, type RuleScope } from './stats.js';

export class HeaderToMetadataFilter implements HttpFilter {
  readonly #stream: StreamControl;
  readonly #rules: Rules;
  readonly #stats: RuleScope;

  private constructor(stream: StreamControl, rules: Rules, stats: RuleScope) {
    this.#stream = stream;
    this.#rules = rules;
    this.#stats = stats;
  }

  /** Returns undefined if there are no rules. */
  static of(stream: StreamControl, rules: Rules, stats: RuleScope): HeaderToMetadataFilter | undefined {
    const isEmpty = rules.request.length + rules.response.length === 0;
    return isEmpty ? undefined : new HeaderToMetadataFilter(stream, rules, stats);
  }

  decodeHeaders(headers: HeaderBlock): HeadersStatus {
    this.#apply(this.#rules.request, headers, REQUEST);
    return HeadersStatus.Continue;
  }

  encodeHeaders(headers: HeaderBlock): HeadersStatus {
    this.#apply(this.#rules.response, headers, RESPONSE);
    return HeadersStatus.Continue;
  }

  /** As in Envoy, of several values for one key the last one is set. */
  #apply(rules: readonly CompiledRule[], headers: HeaderBlock, counters: DirectionCounters): void {
    const stats = this.#stats;
    const values = new Map<string, Record<string, Json>>();
    for (const { missing, present, removes, selector } of rules) {
      const text = selector.read(headers);
      if (text !== undefined && removes) selector.remove(headers);
      const target = text === undefined ? missing : present;
      stats?.increment(counters.processed);
      if (target === undefined) continue;
      if (target === missing) stats?.increment(counters.notFound);
      const value = target.valueOf(text ?? '', stats);
      if (value === undefined) continue;
      stats?.increment(counters.added);
      const struct = values.get(target.namespace) ?? (Object.create(null) as Record<string, Json>);
      struct[target.key] = value;
      values.set(target.namespace, struct);
    }
    if (values.size === 0) return;
    const metadata = this.#stream.info.ownDynamicMetadata();
    for (const [namespace, struct] of values) metadata.merge(namespace, struct);
  }
}
