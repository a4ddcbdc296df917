// The objects of the filter state that set_filter_state filters set (FilterStateValue), compiled.

import type { FilterStateValue } from '../../../config/generated/api.js';
import {
  BatonError,
  buildEach,
  byValue,
  compileSubstitutionFormat,
  type Format,
  type ImplementedTable,
  ipOfAddress,
  parseAddress,
  type UpstreamSharing,
  withinPlace,
} from '../../sdk.js';

/** Kinds of objects, each with what its content must be; undefined: anything. */
export interface Kinds {
  readonly [kind: string]: ((text: string) => boolean) | undefined;
}

/** The cluster of the TCP proxy at the end of the chain, or of that of an internal listener. */
export const CLUSTER = 'envoy.tcp_proxy.cluster';

export const KINDS: Kinds = {
  [CLUSTER]: undefined,
  'envoy.string': undefined,
  // The hits of a request, for rate limit services.
  'envoy.ratelimit.hits_addend': isUint32,
  // The host of a dynamic forward proxy.
  'envoy.upstream.dynamic_host': undefined,
  'envoy.upstream.dynamic_port': isUint32,
  // In Envoy, requests with other ones get other connections. Here that is so for all objects that a connection gets.
  'envoy.hashable_string': undefined,
  // The ends of connections to internal listeners, for their listener filter original_dst.
  'envoy.filters.listener.original_dst.local_ip': isSocketAddress,
  'envoy.filters.listener.original_dst.remote_ip': isSocketAddress,
};

/** Returns whether the text is an IP address with port. */
function isSocketAddress(text: string): boolean {
  return parseAddress(text) !== undefined && ipOfAddress(text) !== '';
}

export const VALUE_FIELDS: ImplementedTable = {
  'envoy.extensions.filters.common.set_filter_state.v3.FilterStateValue': {
    object_key: true,
    factory_key: true,
    format_string: true,
    read_only: true,
    shared_with_upstream: byValue({ NONE: true, ONCE: true, TRANSITIVE: true }),
    skip_if_empty: true,
  },
};

function isUint32(text: string): boolean {
  return /^\d{1,10}$/.test(text) && Number(text) < 2 ** 32;
}

/** One object to set. */
export interface ValueRule {
  readonly key: string;
  readonly format: Format;
  readonly isReadOnly: boolean;
  readonly sharing: UpstreamSharing;
  readonly skipsEmpty: boolean;
  /** Undefined: any content is valid. */
  readonly isValid: ((text: string) => boolean) | undefined;
}

/** Throws Mistakes with the places of all mistakes; `where` is the path of the list. */
export function compileValues(
  values: readonly FilterStateValue[] | undefined,
  where: string,
  kinds: Kinds,
): ValueRule[] {
  return buildEach(values ?? [], (value, index) => ruleOf(value, `${where}[${index}]`, kinds));
}

function ruleOf(value: FilterStateValue, where: string, kinds: Kinds): ValueRule {
  const { object_key: key = '', factory_key: factory = '' } = value;
  if (!Object.hasOwn(kinds, factory || key)) {
    const message = factory === '' ? `'${key}' is no kind of object` : `there are no objects of the kind '${factory}'`;
    const remedy = 'set factory_key: envoy.string';
    throw new BatonError('CONFIG_INVALID', message, {
      where: `${where}.${factory === '' ? 'object_key' : 'factory_key'}`,
      remedy,
    });
  }
  return {
    key,
    format: withinPlace(`${where}.format_string`, () => compileSubstitutionFormat(value.format_string)),
    isReadOnly: value.read_only ?? false,
    sharing: value.shared_with_upstream ?? 'NONE',
    skipsEmpty: value.skip_if_empty ?? false,
    isValid: kinds[factory || key],
  };
}
