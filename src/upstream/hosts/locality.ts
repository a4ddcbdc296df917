// Where a host or this server is: region, zone and sub-zone.

import type { Locality as LocalityConfig } from '../../config/generated/api.js';

/** Unknown parts are ''. */
export interface Locality {
  readonly region: string;
  readonly zone: string;
  readonly subZone: string;
}

/** A locality of the hosts of one priority. */
export interface WeightedLocality extends Locality {
  /** Its load_balancing_weight; 0 without one. */
  readonly weight: number;
}

export function localityOf(config: LocalityConfig | undefined): Locality {
  if (config === undefined) return NOWHERE;
  return { region: config.region ?? '', zone: config.zone ?? '', subZone: config.sub_zone ?? '' };
}

export function isSameLocality(a: Locality, b: Locality): boolean {
  return a === b || (a.region === b.region && a.zone === b.zone && a.subZone === b.subZone);
}

/** Compares by region, zone and sub-zone, for sort(). */
export function compareLocalities(a: Locality, b: Locality): number {
  return compareText(a.region, b.region) || compareText(a.zone, b.zone) || compareText(a.subZone, b.subZone);
}

function compareText(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

/** Everything is unknown. */
export const NOWHERE: Locality = { region: '', zone: '', subZone: '' };
