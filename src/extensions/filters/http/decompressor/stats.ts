// Scopes below `http.<stat_prefix>.decompressor.<library>.<coding>.`

import { defineLayout } from '../../../sdk.js';

/** The bodies of one direction, in `request.` and `response.`. */
export const BodyStats = defineLayout({
  decompressed: 'counter',
  not_decompressed: 'counter',
  total_uncompressed_bytes: 'counter',
  total_compressed_bytes: 'counter',
});
