// Addresses: what listens and what is connected to speaks TCP, and has an address that sockets take.

import { isIP } from 'node:net';
import { parseIp } from '../../io/addresses/address.js';
import { ipRange, isInRange } from '../../io/addresses/ip-range.js';
import type { Address, Pipe, SocketAddress } from '../generated/api.js';
import type { Path } from '../text/path.js';
import type { Problems } from '../text/problems.js';

/** Reports `protocol: UDP`, which only sinks of stats take. */
export function checkStream(socket: SocketAddress | undefined, path: Path, problems: Problems): void {
  if (socket?.protocol !== 'UDP') return;
  problems.error([...path, 'protocol'], "'UDP' of envoy.config.core.v3.SocketAddress.protocol is not implemented here");
}

/** checkStream() of what is connected to, or from, where nothing listens. */
export function checkConnected(socket: SocketAddress | undefined, path: Path, problems: Problems): void {
  checkStream(socket, path, problems);
  if (socket?.ipv4_compat) problems.error([...path, 'ipv4_compat'], LISTENING_ONLY, 'key');
}

/** Of a field that says how an address is listened at. */
export const LISTENING_ONLY = 'it has an effect only on an address that Baton listens at: leave it out';

/** Reports an address that cannot be bound: a name, an IP address with a scope, a path that the kernel does not take. */
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

/** Reports a path that no Unix socket can have, and a mode without a file that could have it. */
export function checkPipe(pipe: Pipe | undefined, path: Path, problems: Problems): void {
  const file = pipe?.path ?? '';
  const bytes = Buffer.byteLength(file);
  // In an abstract name the @ stands for the byte that would end a path.
  const most = file.startsWith('@') ? SUN_PATH_BYTES : SUN_PATH_BYTES - 1;
  if (bytes > most) {
    problems.error([...path, 'path'], `the path of a Unix socket has at most ${most} bytes, found ${bytes}`);
  }
  if (file.startsWith('@') && (pipe?.mode ?? 0) !== 0) {
    problems.error([...path, 'mode'], 'an abstract Unix socket (@) has no mode: leave it out');
  }
}

/** Whether it is an IP address as a socket takes it: without a scope (`%eth0`). */
export function isPlainIp(text: string): boolean {
  return isIP(text) !== 0 && !text.includes('%');
}

/** Whose IPv6 sockets reach IPv4, if they may (ipv6(7), IPV6_V6ONLY). */
const WITH_IP4 = [ipRange('::', 128)!, ipRange('::ffff:0:0', 96)!];

/** Size of sun_path (unix(7)): a path with the NUL byte that ends it. */
const SUN_PATH_BYTES = 108;
