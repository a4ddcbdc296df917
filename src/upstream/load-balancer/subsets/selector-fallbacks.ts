// The fallback policies of selectors by the names of their fields.

import { namesKey } from '../../../http/routing/actions/metadata-match.js';
import type { SelectorSpec } from './subset-spec.js';

/**
 * Returns the selectors with a fallback policy of their own, by namesKey(). As in Envoy, a selector whose fields are the first ones of a
 * selector before it, or all of them, has none: that one has taken its place in the tree of fields.
 */
export function selectorFallbacks(selectors: readonly SelectorSpec[]): ReadonlyMap<string, SelectorSpec> {
  const places = new Set<string>();
  const found = new Map<string, SelectorSpec>();
  for (const selector of selectors) {
    const { fallback, keys } = selector;
    for (let length = 1; length <= keys.length; length++) {
      const place = namesKey(keys.slice(0, length));
      const isNew = !places.has(place);
      places.add(place);
      if (isNew && length === keys.length && fallback !== 'NOT_DEFINED') found.set(place, selector);
    }
  }
  return found;
}
