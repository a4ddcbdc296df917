// Listen sockets, which the primary makes and owns: workers accept on copies, so that a worker that dies takes none along.

import { chmodSync, lstatSync, readFileSync, unlinkSync } from 'node:fs';
import type { Address as AddressConfig, Listener } from '../config/generated/api.js';
import { type Address, AddressKind, addressText, decodeSockaddr, encodeAddress, ipAddress } from '../io/address.js';
import type { ListenSocketOptions, NativeShim } from '../io/shim.js';

/** The sockets of one listener. */
export interface ListenSockets {
  /** Where it really listens: port 0 has become a port. */
  readonly address: Address;
  /** One of each worker, or one for all. */
  readonly fds: readonly number[];
  readonly isShared: boolean;
}

/** The address cannot be had; says which and why. */
export class ListenError extends Error {
  readonly code = 'ERR_LISTEN';
}

/** Binds a listener's sockets, one a worker where the kernel shares a port out (SO_REUSEPORT), and starts to listen. */
export function openListenSockets(shim: NativeShim, listener: Listener, workers: number): ListenSockets {
  const wanted = listenAddress(listener.address);
  const isShared = wanted.kind === AddressKind.Unix || !(listener.enable_reuse_port ?? listener.reuse_port ?? true);
  const options: ListenSocketOptions = {
    reusePort: !isShared,
    freebind: listener.freebind ?? false,
    transparent: listener.transparent ?? false,
    v6Only: !(listener.address?.socket_address?.ipv4_compat ?? false),
  };
  const fds: number[] = [];
  try {
    if (wanted.kind === AddressKind.Unix) removeStaleSocket(wanted.path);
    let address = wanted;
    for (let index = 0; index < (isShared ? 1 : workers); index++) {
      const fd = shim.openListenSocket(encodeAddress(address), options);
      fds.push(fd);
      if (index === 0) address = boundAddress(shim, fd, wanted);
    }
    // All are bound before any listens: a socket that listens is given connections at once.
    for (const fd of fds) shim.listen(fd, listener.tcp_backlog_size ?? largestBacklog());
    const mode = listener.address?.pipe?.mode;
    if (mode !== undefined && mode > 0) chmodSync(wanted.path, mode);
    return { address, fds, isShared };
  } catch (error) {
    for (const fd of fds) shim.closeDescriptor(fd);
    throw new ListenError(`cannot listen on ${addressText(wanted)}: ${explain(error)}`);
  }
}

/** The address that a listener or the admin interface is configured with. */
export function listenAddress(config: AddressConfig | undefined): Address {
  if (config?.pipe !== undefined) return { kind: AddressKind.Unix, ip: '', port: 0, path: config.pipe.path ?? '' };
  const socket = config?.socket_address;
  const address = ipAddress(socket?.address ?? '', socket?.port_value ?? 0);
  if (address === undefined) {
    throw new ListenError(`cannot listen on '${socket?.address}': it is not an IP address; use one, such as 0.0.0.0`);
  }
  return address;
}

function boundAddress(shim: NativeShim, fd: number, wanted: Address): Address {
  if (wanted.kind === AddressKind.Unix) return wanted;
  const raw = shim.boundAddress(fd);
  return { ...wanted, port: decodeSockaddr(raw, 0, raw.length).port };
}

/** A socket file that a former process has left behind would keep the path. Any other file is not ours to remove. */
function removeStaleSocket(path: string): void {
  if (path.startsWith('@')) return;
  try {
    if (!lstatSync(path).isSocket()) throw new Error('a file that is no socket has this path');
    unlinkSync(path);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
  }
}

/** What the kernel allows. */
function largestBacklog(): number {
  try {
    return Number(readFileSync('/proc/sys/net/core/somaxconn', 'utf8')) || 4096;
  } catch {
    return 4096;
  }
}

function explain(error: unknown): string {
  switch ((error as NodeJS.ErrnoException).code) {
    case 'EADDRINUSE':
      return 'the address is in use by another process';
    case 'EACCES':
      return 'permission denied (ports below 1024 need CAP_NET_BIND_SERVICE)';
    case 'EADDRNOTAVAIL':
      return 'this machine does not have the address (freebind: true binds it anyway)';
    default:
      return error instanceof Error ? error.message : String(error);
  }
}
