// UDP listeners and sockets in configurations.

import type { Listener, UdpSocketConfig } from '../generated/api.js';

/** Envoy's default of max_rx_datagram_size. */
const DEFAULT_RX_BYTES = 1500;
const MAX_BYTES = 65535;

/** Returns whether the listener receives datagrams. */
export function isUdp({ address }: Pick<Listener, 'address'>): boolean {
  return address?.socket_address?.protocol === 'UDP';
}

/** Returns the longest datagram that a socket receives. As in Envoy, prefer_gro lifts the limit; `prefersGro`: its default. */
export function rxDatagramBytes(config: UdpSocketConfig | undefined, prefersGro: boolean): number {
  if (config?.prefer_gro ?? prefersGro) return MAX_BYTES;
  return Number(config?.max_rx_datagram_size ?? DEFAULT_RX_BYTES);
}
