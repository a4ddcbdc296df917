// Addresses of listeners, upstream hosts and other peers: they must use TCP and be valid for sockets.

import { isIP } from 'node:net';
import { parseIp } from '../../io/addresses/address.js';
import { ipRange, isInRange } from '../../io/addresses/ip-range.js';
import type { Address, Pipe, SocketAddress } from '../generated/api.js';
import type { Path } from '../text/path.js';
import type { Problems } from '../text/problems.js';

/** Reports `protocol: UDP`, which only stats sinks support. */
export function checkStream(socket: SocketAddress | undefined, path: Path, problems: Problems): void {
  if (socket?.protocol !== 'UDP') return;
  problems.error([...path, 'protocol'], "'UDP' of envoy.config.core.v3.SocketAddress.protocol is not implemented here");
}

/** Like checkStream(), for remote and source addresses, which are not listened on. */
export function checkConnected(socket: SocketAddress | undefined, path: Path, problems: Problems): void {
  checkStream(socket, path, problems);
  if (socket?.ipv4_compat) problems.error([...path, 'ipv4_compat'], LISTENING_ONLY, 'key');
}

/** For fields that only affect listening. */
const LISTENING_ONLY = 'it has an effect only on an address that Baton listens at: leave it out';

/** Reports an address that cannot be bound: a name, an IP address with a scope, an invalid path. */
export function checkBindable(address: Address | undefined, path: Path, problems: Problems): void {
  const { address: host, ipv4_compat: takesIp4 } = address?.socket_address ?? {};
  if (host !== undefined && !isPlainIp(host)) {
    problems.error([...path, 'socket_address', 'address'], `malformed IP address: ${host}`);
  } else if (host !== undefined && takesIp4 && !WITH_IP4.some((range) => isInRange(range, parseIp(host)!))) {
    const text = "it has an effect on '::' and IPv4-mapped addresses only: leave it out";
    problems.error([...path, 'socket_address', 'ipv4_compat'], text, 'key');
  }
  checkPipe(address?.pipe, [...path, 'pipe'], problems);
}

/** Reports an internal address where only a socket can be used. `what` needs one. */
export function checkSocket(address: Address | undefined, what: string, path: Path, problems: Problems): void {
  if (address?.envoy_internal_address === undefined) return;
  problems.error([...path, 'envoy_internal_address'], `${what} needs a socket: set socket_address or pipe`, 'key');
}

/** Reports an invalid path of a Unix socket, and a mode of a socket that has no file. */
export function checkPipe(pipe: Pipe | undefined, path: Path, problems: Problems): void {
  const file = pipe?.path ?? '';
  const bytes = Buffer.byteLength(file);
  // The @ of an abstract name takes the byte that ends a path.
  const max = file.startsWith('@') ? SUN_PATH_BYTES : SUN_PATH_BYTES - 1;
  if (bytes > max) {
    problems.error([...path, 'path'], `the path of a Unix socket has at most ${max} bytes, found ${bytes}`);
  }
  if (file.startsWith('@') && (pipe?.mode ?? 0) !== 0) {
    problems.error([...path, 'mode'], 'an abstract Unix socket (@) has no mode: leave it out');
  }
}

/** Returns whether the text is an IP address without a scope (`%eth0`), as sockets accept it. */
export function isPlainIp(text: string): boolean {
  return isIP(text) !== 0 && !text.includes('%');
}

/** IPv6 addresses whose sockets can also accept IPv4 (ipv6(7), IPV6_V6ONLY). */
const WITH_IP4 = [ipRange('::', 128)!, ipRange('::ffff:0:0', 96)!];

/** Size of sun_path (unix(7)), which includes the final NUL byte of a path. */
const SUN_PATH_BYTES = 108;
