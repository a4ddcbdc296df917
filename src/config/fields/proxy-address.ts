// The HTTP proxy of an endpoint, in the metadata of the endpoint or of its locality.

import type { Address, Metadata } from '../generated/api.js';

/** The key of typed_filter_metadata. */
export const PROXY_ADDRESS = 'envoy.http11_proxy_transport_socket.proxy_address';

/** Returns undefined if the metadata names none. The address may be invalid. */
export function proxyAddressIn(metadata: Metadata | undefined): Address | undefined {
  return metadata?.typed_filter_metadata?.[PROXY_ADDRESS] as Address | undefined;
}
