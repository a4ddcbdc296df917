// Use of what the API deprecates or has not finished: counted each time, told the first time, refused where it says so.

import { runtimeEntries } from './fields/runtime-entries.js';
import type { Bootstrap } from './generated/api.js';
import type { Path } from './text/path.js';
import type { Aspect, Problems } from './text/problems.js';

/** Answers of runtime's static layers to `envoy.deprecated_features:<full name>` and the like, by key. */
export type FeatureKeys = ReadonlyMap<string, boolean>;

/** A deprecated field or enum value where it is used. */
export interface DeprecatedUse {
  readonly path: Path;
  readonly aspect: Aspect;
  /** Full name: of a field with its message, of an enum value with what holds the enum. */
  readonly name: string;
  /** As messages call it. */
  readonly title: string;
  /** Whether the API refuses it by default. */
  readonly isDisallowed: boolean;
}

/** What is said of uses: of all, of what is unfinished (--skip-deprecated-logs), of none; and then they are not counted either. */
export type FeatureNotes = 'all' | 'unfinished' | 'none';

/** Counts and judges the uses of one configuration. */
export class FeatureUse {
  /** Uses of deprecated fields and values: runtime.deprecated_feature_use. */
  deprecated = 0;
  /** Uses of fields and messages that are work in progress: server.wip_protos. */
  unfinished = 0;
  readonly #problems: Problems;
  readonly #keys: FeatureKeys;
  readonly #notes: FeatureNotes;
  readonly #told = new Set<string>();

  constructor(problems: Problems, keys: FeatureKeys, notes: FeatureNotes) {
    this.#problems = problems;
    this.#keys = keys;
    this.#notes = notes;
  }

  /** Notes a use. Returns whether it is allowed; if not, it has been reported. */
  allows(use: DeprecatedUse): boolean {
    const key = `${FEATURE}${use.name}`;
    if (!(this.#keys.get(key) ?? (this.#keys.get(ENABLE_ALL) === true || !use.isDisallowed))) {
      const why = this.#keys.get(key) === false ? `disabled by the runtime key '${key}'` : 'disallowed by default';
      const remedy = `; the runtime key '${key}' set to true in a static layer allows it`;
      this.#problems.error(use.path, `${use.title} is deprecated and ${why}${remedy}`, use.aspect);
      return false;
    }
    if (this.#notes !== 'none') this.deprecated++;
    if (this.#notes === 'all') this.#tell(use.name, use.path, `${use.title} is deprecated`, use.aspect);
    return true;
  }

  /** Notes the use of a field or message that is work in progress. */
  noteUnfinished(path: Path, name: string, title: string): void {
    if (this.#notes === 'none') return;
    this.unfinished++;
    this.#tell(name, path, `${title} is work in progress in Envoy's API and may change without notice`, 'key');
  }

  #tell(name: string, path: Path, message: string, aspect: Aspect): void {
    if (this.#told.has(name)) return;
    this.#told.add(name);
    this.#problems.warn(path, message, aspect);
  }
}

/** What the static layers of a bootstrap say of features; a later layer wins. */
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
