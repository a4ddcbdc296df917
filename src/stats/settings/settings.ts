// Settings of all stats from the bootstrap and the command line, as plain data for readers on any thread.

import type { StatsConfig, StringMatcher } from '../../config/generated/api.js';
import type { TagSetting } from '../tags/tag-extractor.js';

export interface StatsSettings {
  readonly usesDefaultTags: boolean;
  /** Tags besides the defaults, in the order of extraction. */
  readonly tags: readonly TagSetting[];
  /** Which stats exist for readers; undefined: all. */
  readonly matcher: MatcherSettings | undefined;
  /** Upper bounds by name; the first match counts. */
  readonly buckets: readonly BucketSettings[];
}

export type MatcherSettings =
  | { readonly kind: 'reject_all' }
  | { readonly kind: 'exclude' | 'include'; readonly patterns: readonly StringMatcher[] };

export interface BucketSettings {
  readonly match: StringMatcher;
  /** Ascending. */
  readonly bounds: readonly number[];
}

/** @param cliTags values of --stats-tag, each `name:value`, already checked */
export function statsSettings(config: StatsConfig | undefined, cliTags: readonly string[]): StatsSettings {
  return {
    usesDefaultTags: config?.use_all_default_tags ?? true,
    tags: [...cliTags.map(cliTag), ...(config?.stats_tags ?? []).map(configuredTag)],
    matcher: matcherSettings(config?.stats_matcher),
    buckets: (config?.histogram_bucket_settings ?? []).map(({ match = {}, buckets = [] }) => ({
      match,
      bounds: buckets.map(Number).sort((a, b) => a - b),
    })),
  };
}

/** Settings without any configuration. */
export const DEFAULT_SETTINGS: StatsSettings = statsSettings(undefined, []);

function cliTag(text: string): TagSetting {
  const colon = text.indexOf(':');
  return { name: text.slice(0, colon), fixedValue: text.slice(colon + 1) };
}

function configuredTag(tag: NonNullable<StatsConfig['stats_tags']>[number]): TagSetting {
  return { name: tag.tag_name ?? '', regex: tag.regex, fixedValue: tag.fixed_value };
}

function matcherSettings(matcher: StatsConfig['stats_matcher']): MatcherSettings | undefined {
  if (matcher?.reject_all === true) return { kind: 'reject_all' };
  if (matcher?.exclusion_list) return { kind: 'exclude', patterns: matcher.exclusion_list.patterns ?? [] };
  if (matcher?.inclusion_list) return { kind: 'include', patterns: matcher.inclusion_list.patterns ?? [] };
  return undefined;
}
