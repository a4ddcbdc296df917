// The parameters of /stats that all its formats share.

import type { HistogramBuckets } from '../stats/render-text.js';
import type { StatsQuery } from '../stats/selection.js';
import { type AdminParameter, Refusal } from './admin-handler.js';
import { nameFilter } from './name-filter.js';
import type { QueryParameters } from './query-parameters.js';

export interface StatsParameters extends StatsQuery {
  readonly histogramBuckets: HistogramBuckets;
}

const TYPES = {
  All: 'all',
  Counters: 'counters',
  Histograms: 'histograms',
  Gauges: 'gauges',
  TextReadouts: 'textreadouts',
} as const;
const BUCKETS: readonly HistogramBuckets[] = ['cumulative', 'disjoint', 'detailed', 'summary'];
const HIDDEN = ['exclude', 'include', 'only'] as const;

/** As /help lists them. */
export const USED_ONLY: AdminParameter = {
  name: 'usedonly',
  help: 'Only include stats that have been written by system since restart',
};
export const FILTER: AdminParameter = { name: 'filter', help: 'Regular expression (Google re2) for filtering stats' };
export const SELECTION_PARAMETERS: readonly AdminParameter[] = [
  { name: 'invert_filter', help: 'Only include stats that the filter does not match' },
  { name: 'hidden', help: 'Whether to include hidden stats', choices: HIDDEN },
  { name: 'type', help: 'Stat types to include.', choices: Object.keys(TYPES) },
  { name: 'histogram_buckets', help: 'Histogram bucket display mode', choices: BUCKETS },
];

/** Throws a Refusal for values that mean nothing. */
export function statsParameters(query: QueryParameters): StatsParameters {
  const filter = nameFilter(query);
  const invertFilter = query.has('invert_filter');
  if (invertFilter && filter === undefined) throw new Refusal(400, 'invert_filter needs a filter\n');
  return {
    usedOnly: query.has('usedonly'),
    filter,
    invertFilter,
    type: statType(query.get('type')),
    hidden: HIDDEN.find((known) => known === query.get('hidden')) ?? 'exclude',
    histogramBuckets: histogramBuckets(query.get('histogram_buckets')),
  };
}

function statType(value: string | undefined): StatsQuery['type'] {
  if (value === undefined) return 'all';
  if (!Object.hasOwn(TYPES, value)) throw new Refusal(400, 'invalid &type= param');
  return TYPES[value as keyof typeof TYPES];
}

function histogramBuckets(value: string | undefined): HistogramBuckets {
  if (value === undefined || value === 'none') return 'summary';
  const mode = BUCKETS.find((known) => known === value);
  if (mode === undefined) throw new Refusal(400, `usage: /stats?histogram_buckets=(${BUCKETS.join('|')})\n`);
  return mode;
}
