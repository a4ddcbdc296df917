// envoy.filters.listener.original_dst: the local address of a connection becomes the address that it was directed to before the
// kernel redirected it (iptables REDIRECT, DNAT or TPROXY).

import type { OriginalDst } from '../../../../config/generated/api.js';
import type { ListenerFilterExtension } from '../../../sdk.js';
import { RESTORES_DESTINATION } from '../../../sdk.js';

export const originalDst: ListenerFilterExtension<OriginalDst> = {
  category: 'envoy.filters.listener',
  name: 'envoy.filters.listener.original_dst',
  typeUrls: ['type.googleapis.com/envoy.extensions.filters.listener.original_dst.v3.OriginalDst'],
  implemented: { 'envoy.extensions.filters.listener.original_dst.v3.OriginalDst': {} },
  createOnWorker: () => RESTORES_DESTINATION,
};
