// The ends that the opener of a connection to an internal listener passes, for the listener filter original_dst.

import type { PassedValues } from '../access-log/stream/passed-values.js';
import { type Address, AddressKind, parseAddress } from '../io/addresses/address.js';

/** Keys of filter state, which comes before metadata. */
const LOCAL = 'envoy.filters.listener.original_dst.local_ip';
const REMOTE = 'envoy.filters.listener.original_dst.remote_ip';
/** The namespace of metadata, in which `local` is an IP address with port. */
const NAMESPACE = 'envoy.filters.listener.original_dst';

export function passedDestination(passed: PassedValues | undefined): Address | undefined {
  const text = objectText(passed, LOCAL) ?? passed?.metadata.find(([name]) => name === NAMESPACE)?.[1]['local'];
  return typeof text === 'string' ? ipWithPort(text) : undefined;
}

export function passedSource(passed: PassedValues | undefined): Address | undefined {
  const text = objectText(passed, REMOTE);
  return text === undefined ? undefined : ipWithPort(text);
}

function objectText(passed: PassedValues | undefined, key: string): string | undefined {
  return passed?.objects.find(([name]) => name === key)?.[1].text;
}

function ipWithPort(text: string): Address | undefined {
  const address = parseAddress(text);
  return address?.kind === AddressKind.Unix ? undefined : address;
}
