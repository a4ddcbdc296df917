// The parameters of /stats that all formats share.

import type { StatsQuery } from '../../stats/read/selection.js';
import type { HistogramBuckets } from '../../stats/render/render-text.js';
import { type AdminParameter, Refusal } from '../admin-handler.js';
import type { QueryParameters } from '../http/messages/query-parameters.js';
import type { PlainQuery } from '../render/render-stats.js';
import { nameFilter } from './name-filter.js';

const TYPES = {
  All: 'all',
  Counters: 'counters',
  Histograms: 'histograms',
  Gauges: 'gauges',
  TextReadouts: 'textreadouts',
} as const;
const BUCKETS: readonly HistogramBuckets[] = ['cumulative', 'disjoint', 'detailed', 'summary'];
const HIDDEN = ['exclude', 'include', 'only'] as const;

/** Parameters in /help. */
export const USED_ONLY: AdminParameter = {
  name: 'usedonly',
  help: 'Only include stats that have been written by system since restart',
  isFlag: true,
};
export const FILTER: AdminParameter = { name: 'filter', help: 'Regular expression (Google re2) for filtering stats' };
export const SELECTION_PARAMETERS: readonly AdminParameter[] = [
  { name: 'invert_filter', help: 'Only include stats that the filter does not match', isFlag: true },
  { name: 'hidden', help: 'Whether to include hidden stats', choices: HIDDEN },
  { name: 'type', help: 'Stat types to include.', choices: Object.keys(TYPES) },
];
export const HISTOGRAM_BUCKETS: AdminParameter = {
  name: 'histogram_buckets',
  help: 'Histogram bucket display mode',
  choices: BUCKETS,
  preset: 'summary',
};

/** Returns the query for stats. Throws a Refusal for invalid values. */
export function statsQuery(query: QueryParameters): PlainQuery {
  const isFiltered = nameFilter(query, true) !== undefined;
  const invertFilter = query.has('invert_filter');
  if (invertFilter && !isFiltered) throw new Refusal(400, 'invert_filter needs a filter\n');
  return {
    usedOnly: query.has('usedonly'),
    pattern: query.get('filter'),
    invertFilter,
    type: statType(query.get('type')),
    hidden: hiddenStats(query.get('hidden')),
  };
}

function hiddenStats(value: string | undefined): (typeof HIDDEN)[number] {
  if (value === undefined) return 'exclude';
  const mode = HIDDEN.find((known) => known === value);
  if (mode === undefined) throw new Refusal(400, 'usage: /stats?hidden=(include|only|exclude)\n\n');
  return mode;
}

/** Returns the answer to a format that no endpoint has. */
export function unknownFormat(): Refusal {
  return new Refusal(400, 'usage: /stats?format=(html|active-html|json|prometheus|text)\n\n');
}

/** Returns how text and JSON show histograms. Throws a Refusal for an unknown mode. */
export function histogramBuckets(query: QueryParameters): HistogramBuckets {
  const value = query.get('histogram_buckets');
  if (value === undefined || value === 'none') return 'summary';
  const mode = BUCKETS.find((known) => known === value);
  if (mode === undefined) throw unknownBuckets();
  return mode;
}

/** Returns the answer to a histogram_buckets value that no format supports. */
export function unknownBuckets(): Refusal {
  return new Refusal(400, `usage: /stats?histogram_buckets=(${BUCKETS.join('|')}|prometheusnative)\n`);
}

function statType(value: string | undefined): StatsQuery['type'] {
  if (value === undefined) return 'all';
  if (!Object.hasOwn(TYPES, value)) throw new Refusal(400, 'invalid &type= param');
  return TYPES[value as keyof typeof TYPES];
}
