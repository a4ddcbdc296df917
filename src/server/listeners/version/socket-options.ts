// socket_options of listeners and of the admin interface, as Envoy applies them to a socket of one address.

import type { SocketOption as OptionConfig, SocketOption_SocketState } from '../../../config/generated/api.js';
import { type Address, AddressKind } from '../../../io/addresses/address.js';
import type { SocketOption } from '../../../io/shim.js';

/** Returns the options for `address` that are set in this state of a socket. */
export function socketOptionsAt(
  options: readonly OptionConfig[] | undefined,
  state: SocketOption_SocketState,
  address: Address,
  isDatagram = false,
): SocketOption[] {
  return (options ?? [])
    .filter((option) => (option.state ?? 'STATE_PREBIND') === state && isFor(option, address, isDatagram))
    .map(({ level = 0, name = 0, int_value: number = 0, buf_value: bytes }) => ({
      level: asInt(level),
      name: asInt(name),
      value: bytes === undefined ? intBytes(number) : Buffer.from(bytes, 'base64'),
    }));
}

/** As in Envoy, options for sockets of another kind are left out. */
function isFor({ ip_version: version, type }: OptionConfig, { kind }: Address, isDatagram: boolean): boolean {
  if (type !== undefined && (isDatagram ? type.datagram : type.stream) === undefined) return false;
  if (version === 'SOCKET_IP_VERSION_IPV4') return kind === AddressKind.Ip4;
  return version !== 'SOCKET_IP_VERSION_IPV6' || kind === AddressKind.Ip6;
}

/** As in Envoy, of a number its lowest 32 bits. */
function asInt(value: bigint | number | string): number {
  return Number(BigInt.asIntN(32, BigInt(value)));
}

function intBytes(value: bigint | number | string): Uint8Array {
  const bytes = Buffer.alloc(4);
  bytes.writeInt32LE(asInt(value));
  return bytes;
}
