// Requests stats as JSON and parses them.

import type { Bin } from './histogram.js';
import { queryText } from './query.js';
import { getJson } from './server.js';

export interface HistogramDetails {
  readonly name: string;
  readonly totals: readonly Bin[];
  readonly intervals: readonly Bin[];
}

export interface Stats {
  /** Counters and gauges as numbers, text readouts as texts. */
  readonly values: ReadonlyMap<string, number | string>;
  readonly histograms: readonly HistogramDetails[];
}

interface Answer {
  readonly stats: readonly (
    | { readonly name: string; readonly value: number | string }
    | { readonly histograms: { readonly details: readonly HistogramDetails[] } }
  )[];
}

/** Returns the stats that `parameters` of /stats select, histograms with their bins. */
export async function getStats(parameters: Readonly<Record<string, string>>): Promise<Stats> {
  const query = { ...parameters, format: 'json', histogram_buckets: 'detailed' };
  const { stats } = await getJson<Answer>(`stats?${queryText(Object.entries(query))}`);
  const values = new Map<string, number | string>();
  let histograms: readonly HistogramDetails[] = [];
  for (const each of stats) {
    if ('histograms' in each) histograms = each.histograms.details;
    else values.set(each.name, each.value);
  }
  return { values, histograms };
}

/** Returns a regular expression that matches exactly these names. */
export function namesPattern(names: readonly string[]): string {
  return `^(?:${names.map((name) => name.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&')).join('|')})$`;
}
