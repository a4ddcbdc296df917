// Scopes below `http.<stat_prefix>.compressor.<library>.<coding>.`: what was compressed, and why other responses were not.

import { type CounterSlot, defineLayout } from '../../../sdk.js';

/** Why responses were compressed or not, by the accept-encoding of their requests and by etag. */
export const ResponseStats = defineLayout({
  no_accept_header: 'counter',
  header_identity: 'counter',
  header_compressor_used: 'counter',
  header_compressor_overshadowed: 'counter',
  header_wildcard: 'counter',
  header_not_valid: 'counter',
  not_compressed_etag: 'counter',
});

/** The bodies of one direction, in `request.` and `response.`. */
export const BodyStats = defineLayout({
  compressed: 'counter',
  not_compressed: 'counter',
  total_uncompressed_bytes: 'counter',
  total_compressed_bytes: 'counter',
  content_length_too_small: 'counter',
});

/** As in Envoy, the stats of response bodies have no `response.` in their names without response_direction_config. */
export const UndirectedStats = defineLayout({
  no_accept_header: 'counter',
  header_identity: 'counter',
  header_compressor_used: 'counter',
  header_compressor_overshadowed: 'counter',
  header_wildcard: 'counter',
  header_not_valid: 'counter',
  not_compressed_etag: 'counter',
  compressed: 'counter',
  not_compressed: 'counter',
  total_uncompressed_bytes: 'counter',
  total_compressed_bytes: 'counter',
  content_length_too_small: 'counter',
});

export type BodySlots = { readonly [name in keyof typeof BodyStats.at]: CounterSlot };
