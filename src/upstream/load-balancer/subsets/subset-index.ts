// The subsets of a cluster's hosts: which hosts have the fields of each selector, with which values.

import { canonicalJson } from '../../../common/canonical-json.js';
import type { Json, Struct } from '../../../config/generated/api.js';
import { criterionKey, LB_NAMESPACE } from '../../../http/routing/actions/metadata-match.js';
import type { HostSetData } from '../../hosts/host-set.js';
import type { SelectorSpec, SubsetSpec } from './subset-spec.js';

/** Limits that keep a hostile or mistaken list of hosts from using up the memory: a list of values in each of several fields multiplies. */
export interface SubsetLimits {
  readonly maxSubsets: number;
  /** Maximum sum of the hosts of all subsets. */
  readonly maxMembers: number;
}

/** Each subset of a policy that picks by hash may have a large table. */
export function subsetLimits(picksByHash: boolean): SubsetLimits {
  return { maxSubsets: picksByHash ? 1024 : 16_384, maxMembers: 1 << 20 };
}

export interface HostSubset {
  readonly isSingleHost: boolean;
  /** Indexes in the host set, ascending. */
  readonly hosts: number[];
}

export class SubsetIndex {
  /** By MetadataMatch.key. */
  readonly subsets: Map<string, HostSubset> = new Map();
  /** Hosts that have the same single-host subset as a host before them in their priority. */
  duplicates = 0;
  /** How often a host could not be added to a subset because of the limits, or because its value cannot be compared. */
  overflow = 0;
}

/** Maximum number of subsets of one selector that a host is in. */
const MAX_OF_HOST = 1024;

/** Hosts that are read in a step: less than a millisecond. */
const HOSTS_PER_STEP = 512;
/** Keys of subsets that are found in a step, and selectors that are compared with a host. */
const KEYS_PER_STEP = 1024;

/** Finds the subsets. Yields about every millisecond. */
export function* indexSubsets(
  hosts: HostSetData,
  { selectors, splitsLists }: SubsetSpec,
  limits: SubsetLimits,
): Generator<void, SubsetIndex> {
  const index = new SubsetIndex();
  const { metadata = [] } = hosts;
  let members = 0;
  let work = 0;
  for (let host = 0; host < metadata.length; host++) {
    const fields = metadata[host]?.filter_metadata?.[LB_NAMESPACE];
    if (fields === undefined) continue;
    for (const selector of selectors) {
      const combinations = combinationsOf(fields, selector, splitsLists);
      if (combinations === undefined) {
        index.overflow++;
        continue;
      }
      for (const key of combinations) {
        const isAdded = members < limits.maxMembers && add(index, key, host, selector, hosts.priorities, limits);
        if (isAdded) members++;
        else index.overflow++;
      }
      work += 1 + combinations.length;
      if (work < KEYS_PER_STEP) continue;
      work = 0;
      yield;
    }
  }
  return index;
}

/** Returns the indexes of the hosts that have all fields. Yields about every millisecond. */
export function* hostsWith(hosts: HostSetData, fields: Struct, splitsLists: boolean): Generator<void, number[]> {
  const criteria = Object.entries(fields).map(([name, value]) => [name, canonicalJson(value)] as const);
  const found: number[] = [];
  for (let host = 0; host < hosts.blocks.length; host++) {
    const own = hosts.metadata?.[host]?.filter_metadata?.[LB_NAMESPACE] ?? NO_FIELDS;
    if (criteria.every(([name, text]) => hasValue(own, name, text, splitsLists))) found.push(host);
    if (host % HOSTS_PER_STEP === HOSTS_PER_STEP - 1) yield;
  }
  return found;
}

const NO_FIELDS: Struct = {};

function hasValue(own: Struct, name: string, text: string | undefined, splitsLists: boolean): boolean {
  if (text === undefined || !Object.hasOwn(own, name)) return false;
  const value = own[name]!;
  if (splitsLists && Array.isArray(value)) return value.some((each) => canonicalJson(each) === text);
  return canonicalJson(value) === text;
}

/** Returns false if the host cannot be added because there are too many subsets. */
function add(
  index: SubsetIndex,
  key: string,
  host: number,
  { isSingleHost }: SelectorSpec,
  priorities: Uint8Array,
  { maxSubsets }: SubsetLimits,
): boolean {
  const known = index.subsets.get(key);
  if (known === undefined) {
    if (index.subsets.size >= maxSubsets) return false;
    index.subsets.set(key, { isSingleHost, hosts: [host] });
    return true;
  }
  const last = known.hosts.at(-1)!;
  if (!known.isSingleHost) {
    // Two lists of values may lead to one subset.
    if (last !== host) known.hosts.push(host);
    return true;
  }
  // The first host of the highest priority stays.
  if (priorities[host]! < priorities[known.hosts[0]!]!) known.hosts[0] = host;
  else if (priorities[host] === priorities[last]) index.duplicates++;
  return true;
}

/**
 * Returns the keys of a host's subsets: none if it lacks a field. Returns undefined if they are more than MAX_OF_HOST, or if a value cannot be
 * compared. As in Envoy, an empty list that is the first field counts as no field at all.
 */
function combinationsOf(fields: Struct, { keys }: SelectorSpec, splitsLists: boolean): readonly string[] | undefined {
  let all: string[] = [];
  for (const name of keys) {
    if (!Object.hasOwn(fields, name)) return [];
    const value = fields[name]!;
    const values: readonly Json[] = splitsLists && Array.isArray(value) ? value : [value];
    if (values.length * Math.max(1, all.length) > MAX_OF_HOST) return undefined;
    const parts = values.map((each) => criterionKey(name, each));
    if (parts.includes('')) return undefined;
    all = all.length === 0 ? parts : all.flatMap((each) => parts.map((next) => each + next));
  }
  return all;
}
