// Stats of header_to_metadata, which exist only with a stat_prefix.

import { type CounterSlot, defineLayout, type Scope } from '../../../sdk.js';

/** Scope `http_filter_name.<stat_prefix>.` */
export const RuleStats = defineLayout({
  base64_decode_failed: 'counter',
  header_value_too_long: 'counter',
  regex_substitution_failed: 'counter',
  request_header_not_found: 'counter',
  request_metadata_added: 'counter',
  request_rules_processed: 'counter',
  response_header_not_found: 'counter',
  response_metadata_added: 'counter',
  response_rules_processed: 'counter',
});

/** Returns undefined without a prefix. */
export function scopePrefixOf(statPrefix: string | undefined): string | undefined {
  return statPrefix ? `http_filter_name.${statPrefix}.` : undefined;
}

/** The counters of one direction. */
export interface DirectionCounters {
  readonly processed: CounterSlot;
  readonly added: CounterSlot;
  readonly notFound: CounterSlot;
}

const { at } = RuleStats;

export const REQUEST: DirectionCounters = {
  processed: at.request_rules_processed,
  added: at.request_metadata_added,
  notFound: at.request_header_not_found,
};

export const RESPONSE: DirectionCounters = {
  processed: at.response_rules_processed,
  added: at.response_metadata_added,
  notFound: at.response_header_not_found,
};

export type RuleScope = Scope | undefined;
