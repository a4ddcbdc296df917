// Uses of deprecated and unfinished API features: each use is counted, the first one causes a warning, and disallowed ones are
// refused.

import { runtimeEntries } from './fields/runtime-entries.js';
import type { Bootstrap } from './generated/api.js';
import type { Path } from './text/path.js';
import type { Aspect, Problems } from './text/problems.js';

/** Values of `envoy.deprecated_features:<full name>` and similar keys in static runtime layers. */
export type FeatureKeys = ReadonlyMap<string, boolean>;

/** A use of a deprecated field or enum value. */
export interface DeprecatedUse {
  readonly path: Path;
  readonly aspect: Aspect;
  /** Full name: that of a field includes its message, that of an enum value includes the scope of the enum. */
  readonly name: string;
  /** Name in messages. */
  readonly title: string;
  /** Whether the API disallows it by default. */
  readonly isDisallowed: boolean;
}

/**
 * Which uses cause warnings: all, those of unfinished features (--skip-deprecated-logs), or none. With `none`, uses are not
 * counted either.
 */
export type FeatureNotes = 'all' | 'unfinished' | 'none';

/** Counts and judges the uses in one configuration. */
export class FeatureUse {
  /** Uses of deprecated fields and values: runtime.deprecated_feature_use. */
  deprecated = 0;
  /** Uses of fields and messages that are work in progress: server.wip_protos. */
  unfinished = 0;
  /** Optional HTTP filters that this build does not have: server.optional_filters_left_out. */
  leftOutFilters = 0;
  readonly #problems: Problems;
  readonly #keys: FeatureKeys;
  readonly #notes: FeatureNotes;
  readonly #warned = new Set<string>();

  constructor(problems: Problems, keys: FeatureKeys, notes: FeatureNotes) {
    this.#problems = problems;
    this.#keys = keys;
    this.#notes = notes;
  }

  /** Records a use. Returns whether it is allowed; otherwise it has been reported. */
  allows(use: DeprecatedUse): boolean {
    const key = `${FEATURE}${use.name}`;
    if (!(this.#keys.get(key) ?? (this.#keys.get(ENABLE_ALL) === true || !use.isDisallowed))) {
      const why = this.#keys.get(key) === false ? `disabled by the runtime key '${key}'` : 'disallowed by default';
      const remedy = `; the runtime key '${key}' set to true in a static layer allows it`;
      this.#problems.error(use.path, `${use.title} is deprecated and ${why}${remedy}`, use.aspect);
      return false;
    }
    if (this.#notes !== 'none') this.deprecated++;
    if (this.#notes === 'all') this.#warnOnce(use.name, use.path, `${use.title} is deprecated`, use.aspect);
    return true;
  }

  /** Records the use of a field or message that is work in progress. */
  noteUnfinished(path: Path, name: string, title: string): void {
    if (this.#notes === 'none') return;
    this.unfinished++;
    this.#warnOnce(name, path, `${title} is work in progress in Envoy's API and may change without notice`, 'key');
  }

  /** Records an optional filter that is left out. */
  noteLeftOut(path: Path, message: string): void {
    this.leftOutFilters++;
    this.#problems.warn(path, message);
  }

  #warnOnce(name: string, path: Path, message: string, aspect: Aspect): void {
    if (this.#warned.has(name)) return;
    this.#warned.add(name);
    this.#problems.warn(path, message, aspect);
  }
}

/** Returns the feature keys in the static layers of a bootstrap. Later layers override earlier ones. */
export function featureKeys(bootstrap: Bootstrap): FeatureKeys {
  const keys = new Map<string, boolean>();
  for (const layer of bootstrap.layered_runtime?.layers ?? []) {
    for (const { key, value } of runtimeEntries(layer?.static_layer ?? {})) {
      if (value === true || value === 'true') keys.set(key, true);
      else if (value === false || value === 'false') keys.set(key, false);
    }
  }
  return keys;
}

const FEATURE = 'envoy.deprecated_features:';
const ENABLE_ALL = 'envoy.features.enable_all_deprecated_features';
