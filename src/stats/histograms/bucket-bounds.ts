// Upper bounds of a histogram's buckets: those of the first setting that matches its name, or the defaults.

import type { Section, StatTable } from '../read/section.js';
import { compileNameMatcher, type NameMatcher } from '../settings/name-matcher.js';
import type { BucketSettings } from '../settings/settings.js';
import { DEFAULT_BOUNDS } from './distribution.js';

export class BucketBounds {
  readonly #settings: readonly { readonly matcher: NameMatcher; readonly bounds: readonly number[] }[];

  /** @throws BatonError CONFIG_INVALID or REGEX_INVALID */
  constructor(settings: readonly BucketSettings[]) {
    this.#settings = settings.map(({ match, bounds }) => ({ matcher: compileNameMatcher(match), bounds }));
  }

  bounds(section: Section, table: StatTable, index: number): readonly number[] {
    if (this.#settings.length === 0) return DEFAULT_BOUNDS;
    const name = section.prefix + table.names[index]!;
    const bounds = this.#settings.find(({ matcher }) => matcher.matches(name))?.bounds ?? [];
    return bounds.length === 0 ? DEFAULT_BOUNDS : bounds;
  }
}
