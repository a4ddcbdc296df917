// The settings of subset load balancing; plain data.

import type { Struct } from '../../../config/generated/api.js';

/** What happens to requests for which there is no subset. */
export type SubsetFallback = 'NO_FALLBACK' | 'ANY_ENDPOINT' | 'DEFAULT_SUBSET';

export interface SelectorSpec {
  /** Names of metadata fields, sorted and distinct: each combination of their values is a subset. */
  readonly keys: readonly string[];
  /** A subset is its first host only, whatever its health. */
  readonly isSingleHost: boolean;
  /** NOT_DEFINED: that of the cluster. KEYS_SUBSET: only the fields `fallbackKeys` are used. */
  readonly fallback: SubsetFallback | 'NOT_DEFINED' | 'KEYS_SUBSET';
  /** Sorted and distinct. */
  readonly fallbackKeys: readonly string[];
}

export interface SubsetSpec {
  readonly fallback: SubsetFallback;
  /** Fields that hosts of the default subset have. */
  readonly defaultSubset: Struct;
  /** With `ignoresOthers` those with the most keys come first. */
  readonly selectors: readonly SelectorSpec[];
  /** Hosts are chosen by the weights of localities within a subset, too. */
  readonly weighsLocalities: boolean;
  /** The weight of a locality shrinks with the part of its hosts that is in the subset. */
  readonly scalesLocalities: boolean;
  /** When the fallback has no host either, any host of the cluster gets the request. */
  readonly panicsToAny: boolean;
  /** A host whose field is a list is in the subset of each of the values. */
  readonly splitsLists: boolean;
  /** The field `fallback_list` of a request has further fields to try, one after the other. */
  readonly triesLists: boolean;
  /** A request may have more fields than a selector: they are ignored. */
  readonly ignoresOthers: boolean;
}
