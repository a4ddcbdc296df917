// The match criteria of filter chains, as values that can be compared.

import { lowerAscii } from '../../common/text/lower-ascii.js';
import { ipRange, rangeText } from '../../io/addresses/ip-range.js';
import type { CidrRange, FilterChainMatch } from '../generated/api.js';

/** Value of a criterion that is not set. */
export const ANY = '';

/**
 * The values that a match accepts, keyed by criterion, in order of evaluation. Equal values have equal texts; [ANY] if the
 * criterion is not set.
 */
export const CRITERIA = {
  destination_port: (match: FilterChainMatch) => [String(match.destination_port ?? ANY)],
  prefix_ranges: (match: FilterChainMatch) => ranges(match.prefix_ranges),
  server_names: (match: FilterChainMatch) => values(match.server_names?.map(serverName)),
  transport_protocol: (match: FilterChainMatch) => [match.transport_protocol ?? ANY],
  application_protocols: (match: FilterChainMatch) => values(match.application_protocols),
  direct_source_prefix_ranges: (match: FilterChainMatch) => ranges(match.direct_source_prefix_ranges),
  source_type: (match: FilterChainMatch) => [sourceType(match)],
  source_prefix_ranges: (match: FilterChainMatch) => ranges(match.source_prefix_ranges),
  source_ports: (match: FilterChainMatch) => values(match.source_ports?.map(String)),
} as const;

export type Criterion = keyof typeof CRITERIA;

/** In order of evaluation. */
export const CRITERION_NAMES = Object.keys(CRITERIA) as readonly Criterion[];

/** Returns the indexes of two matches that some connections fulfil equally well; undefined if there are none. */
export function overlapOf(matches: readonly FilterChainMatch[]): readonly [number, number] | undefined {
  const seen = new Set<string>();
  const search = (among: readonly number[], step: number): readonly [number, number] | undefined => {
    if (among.length < 2) return undefined;
    const criterion = CRITERION_NAMES[step];
    if (criterion === undefined) return [among[0]!, among[1]!];
    // Lists of values produce the same groups repeatedly; each is searched once.
    const key = `${step}:${among}`;
    if (seen.has(key)) return undefined;
    seen.add(key);
    for (const group of groupsBy(among, (index) => CRITERIA[criterion](matches[index]!)).values()) {
      const found = search(group, step + 1);
      if (found !== undefined) return found;
    }
    return undefined;
  };
  return search([...matches.keys()], 0);
}

/** Groups items by each of their values. */
export function groupsBy<T>(items: readonly T[], valuesOf: (item: T) => Iterable<string>): Map<string, T[]> {
  const groups = new Map<string, T[]>();
  for (const item of items) {
    for (const value of new Set(valuesOf(item))) {
      const group = groups.get(value);
      if (group === undefined) groups.set(value, [item]);
      else group.push(item);
    }
  }
  return groups;
}

function sourceType({ source_type = 'ANY' }: FilterChainMatch): string {
  return source_type === 'ANY' ? ANY : source_type;
}

/** Returns a wildcard without its star: `.example.com`. */
function serverName(name: string): string {
  const lower = lowerAscii(name);
  return lower.startsWith('*.') ? lower.slice(1) : lower;
}

function ranges(list: readonly CidrRange[] | undefined): readonly string[] {
  return values(
    list?.map(({ address_prefix = '', prefix_len = 0 }) => {
      const range = ipRange(address_prefix, prefix_len);
      // Invalid addresses have been refused by the checks.
      return range === undefined ? address_prefix : rangeText(range);
    }),
  );
}

function values(list: readonly string[] | undefined): readonly string[] {
  return list === undefined || list.length === 0 ? [ANY] : list;
}
