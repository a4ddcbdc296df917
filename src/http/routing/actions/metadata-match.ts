// The metadata that a host must have to get a request: the fields of the namespace `envoy.lb` in metadata_match, merged with those of
// dynamic metadata. Clusters with subsets choose hosts by it.

import { canonicalJson } from '../../../common/canonical-json.js';
import type { Json, Metadata, Struct } from '../../../config/generated/api.js';

/** The namespace of metadata for load balancing. */
export const LB_NAMESPACE = 'envoy.lb';

/** Values with a longer text are not compared: clients may choose them, and each subset keeps those of its hosts. */
const MAX_TEXT = 1024;

export class Criterion {
  readonly name: string;
  readonly value: Json;
  #part: string | undefined;

  constructor(name: string, value: Json) {
    this.name = name;
    this.value = value;
  }

  /** See criterionKey(). */
  get part(): string {
    this.#part ??= criterionKey(this.name, this.value);
    return this.#part;
  }
}

/** Immutable, so that all requests of a route share one. */
export class MetadataMatch {
  /** Sorted by name. */
  readonly criteria: readonly Criterion[];
  #key: string | undefined;
  #namesKey: string | undefined;

  private constructor(criteria: readonly Criterion[]) {
    this.criteria = criteria;
  }

  /** Returns undefined if the metadata has no fields for load balancing. `base`: what the fields are merged into. */
  static of(metadata: Metadata | undefined, base?: MetadataMatch): MetadataMatch | undefined {
    const fields = metadata?.filter_metadata?.[LB_NAMESPACE];
    if (fields === undefined) return base;
    return base === undefined ? MetadataMatch.from(fields) : base.merge(fields);
  }

  static from(fields: Struct): MetadataMatch {
    return new MetadataMatch(sorted(Object.entries(fields).map(([name, value]) => new Criterion(name, value))));
  }

  /** Identifies the subset of the hosts that have all fields: a criterionKey() for each. */
  get key(): string {
    this.#key ??= subsetKey(this.criteria);
    return this.#key;
  }

  /** Identifies the fields without their values; see namesKey(). */
  get namesKey(): string {
    this.#namesKey ??= namesKey(this.criteria.map(({ name }) => name));
    return this.#namesKey;
  }

  valueOf(name: string): Json | undefined {
    return this.criteria.find((each) => each.name === name)?.value;
  }

  /** Returns the same with `fields`, which replace those of the same names. */
  merge(fields: Struct): MetadataMatch {
    const all = new Map(this.criteria.map((each) => [each.name, each]));
    for (const [name, value] of Object.entries(fields)) all.set(name, new Criterion(name, value));
    return new MetadataMatch(sorted([...all.values()]));
  }

  /** Returns only the named fields. */
  only(names: readonly string[]): MetadataMatch {
    return new MetadataMatch(this.criteria.filter(({ name }) => names.includes(name)));
  }

  without(removed: string): MetadataMatch {
    return new MetadataMatch(this.criteria.filter(({ name }) => name !== removed));
  }
}

/** Returns a text that is equal for equal criteria, which are sorted by name; '' if a value cannot be compared, or without criteria. */
function subsetKey(criteria: readonly Criterion[]): string {
  let key = '';
  for (const { part } of criteria) {
    if (part === '') return '';
    key += part;
  }
  return key;
}

/** Returns the key of a single criterion, of which those of several consist; '' if the value cannot be compared. */
export function criterionKey(name: string, value: Json): string {
  const text = canonicalJson(value);
  return text === undefined || text.length > MAX_TEXT ? '' : `${JSON.stringify(name)}=${text};`;
}

/** Returns a text that is equal for equal lists of names. */
export function namesKey(names: readonly string[]): string {
  return JSON.stringify(names);
}

function sorted(criteria: Criterion[]): Criterion[] {
  return criteria.sort((a, b) => (a.name < b.name ? -1 : 1));
}
