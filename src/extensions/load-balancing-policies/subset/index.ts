// envoy.load_balancing_policies.subset: picks in the subset of the hosts whose metadata a request names.

import type { Subset, Subset_LbSubsetSelector } from '../../../config/generated/api.js';
import { byValue, obeyed, type SelectorSpec, type SubsetSpec, type WrappingPolicyExtension } from '../../sdk.js';

export const subset: WrappingPolicyExtension<Subset> = {
  category: 'envoy.load_balancing_policies',
  name: 'envoy.load_balancing_policies.subset',
  typeUrls: ['type.googleapis.com/envoy.extensions.load_balancing_policies.subset.v3.Subset'],
  implemented: {
    'envoy.extensions.load_balancing_policies.subset.v3.Subset': {
      fallback_policy: byValue({ NO_FALLBACK: true, ANY_ENDPOINT: true, DEFAULT_SUBSET: true }),
      ...obeyed('default_subset', 'subset_selectors', 'allow_redundant_keys', 'locality_weight_aware'),
      ...obeyed('scale_locality_weight', 'panic_mode_any', 'list_as_any', 'subset_lb_policy'),
      metadata_fallback_policy: byValue({ METADATA_NO_FALLBACK: true, FALLBACK_LIST: true }),
    },
    'envoy.extensions.load_balancing_policies.subset.v3.Subset.LbSubsetSelector': {
      ...obeyed('keys', 'single_host_per_subset', 'fallback_keys_subset'),
      fallback_policy: byValue({
        NOT_DEFINED: true,
        NO_FALLBACK: true,
        ANY_ENDPOINT: true,
        DEFAULT_SUBSET: true,
        KEYS_SUBSET: true,
      }),
    },
  },
  validate({ subset_selectors: selectors = [] }, report) {
    selectors.forEach((selector, index) => {
      const mistake = mistakeOf(selector);
      const at = `subset_selectors[${index}]`;
      if (mistake !== undefined) report(selector.fallback_keys_subset ? `${at}.fallback_keys_subset` : at, mistake);
    });
  },
  wrap: (config) => ({ policies: config.subset_lb_policy, subsets: subsetSpec(config) }),
};

/** Returns what Envoy refuses in a selector, in its words. */
function mistakeOf({ fallback_keys_subset: some = [], fallback_policy: fallback, keys = [] }: Subset_LbSubsetSelector) {
  if (keys.length === 0) return undefined;
  if (fallback !== 'KEYS_SUBSET')
    return some.length > 0 ? 'fallback_keys_subset can be set only for KEYS_SUBSET fallback_policy' : undefined;
  if (some.length === 0) return 'fallback_keys_subset cannot be empty';
  if (!some.every((key) => keys.includes(key))) return 'fallback_keys_subset must be a subset of selector keys';
  if (keys.every((key) => some.includes(key))) return 'fallback_keys_subset cannot be equal to keys';
  return undefined;
}

function subsetSpec(config: Subset): SubsetSpec {
  const ignoresOthers = config.allow_redundant_keys ?? false;
  // A selector without keys selects nothing.
  const selectors = (config.subset_selectors ?? []).filter(({ keys = [] }) => keys.length > 0).map(selectorSpec);
  if (ignoresOthers) selectors.sort((a, b) => b.keys.length - a.keys.length);
  return {
    fallback: config.fallback_policy ?? 'NO_FALLBACK',
    defaultSubset: config.default_subset ?? {},
    selectors,
    weighsLocalities: config.locality_weight_aware ?? false,
    scalesLocalities: config.scale_locality_weight ?? false,
    panicsToAny: config.panic_mode_any ?? false,
    splitsLists: config.list_as_any ?? false,
    triesLists: config.metadata_fallback_policy === 'FALLBACK_LIST',
    ignoresOthers,
  };
}

function selectorSpec(selector: Subset_LbSubsetSelector): SelectorSpec {
  return {
    keys: sortedNames(selector.keys),
    isSingleHost: selector.single_host_per_subset ?? false,
    fallback: selector.fallback_policy ?? 'NOT_DEFINED',
    fallbackKeys: sortedNames(selector.fallback_keys_subset),
  };
}

function sortedNames(names: readonly string[] = []): string[] {
  return [...new Set(names)].sort();
}
