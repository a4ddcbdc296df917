// Listen sockets, which the primary makes and owns: workers accept on copies, so that a worker that dies takes none along.

import { readFileSync } from 'node:fs';
import { currentUmask } from '../../../common/process/umask.js';
import { shownName } from '../../../common/text/shown.js';
import type { Address as AddressConfig, Listener } from '../../../config/generated/api.js';
import {
  type Address,
  AddressKind,
  addressText,
  decodeSockaddr,
  encodeAddress,
  ipAddress,
} from '../../../io/addresses/address.js';
import { isSocketBound, removeStaleSocket } from '../../../io/addresses/socket-file.js';
import type { ListenSocketOptions, NativeShim } from '../../../io/shim.js';
import { getLogger } from '../../../log/logger.js';
import type { InheritedSocket } from './inherited-sockets.js';

const logger = getLogger('main');

/** The sockets of one listener. */
export interface ListenSockets {
  /** Where it really listens: port 0 has become a port. */
  readonly address: Address;
  /** One of each worker, or some for all; from a parent process as many as it had. */
  readonly fds: readonly number[];
  /** All workers accept on all of them. */
  readonly isShared: boolean;
  /** Further sockets can be bound to the address. */
  readonly isReusePort: boolean;
  /** Permissions that the file of a Unix socket has got here; 0: those that it was made with. */
  readonly mode: number;
  readonly lineage: SocketLineage;
}

/** The same object for versions of a listener that have the same sockets. */
export interface SocketLineage {
  /** The first of the sockets came from a parent process, which has copies of all: its number of them, and how many. */
  readonly ofParent: { readonly id: number; readonly count: number } | undefined;
}

/** Sockets that are bound already, where a version of the listener before has them, or a parent process. */
export interface FormerSockets extends Omit<InheritedSocket, 'id'> {
  readonly mode: number;
  readonly lineage: SocketLineage;
}

/** The address cannot be had; says which and why. */
export class ListenError extends Error {
  readonly code = 'ERR_LISTEN';
  /** Another process or listener has it, and may leave it. */
  readonly isInUse: boolean;

  constructor(message: string, isInUse = false) {
    super(message);
    this.isInUse = isInUse;
  }
}

export interface OpenOptions {
  /** So many sockets where the kernel shares a port out (SO_REUSEPORT). */
  readonly workers: number;
  /** They are taken over: their descriptors are the new sockets' own. */
  readonly former: FormerSockets | undefined;
  /** Where they are bound; undefined: where the listener is configured. */
  readonly address: Address | undefined;
  /** A path at which another process has a Unix socket is in use. Otherwise that one loses it. */
  readonly keepsBoundPath: boolean;
}

/**
 * Binds a listener's sockets. Listening on what is bound besides `former` begins later: a socket that listens is given
 * connections at once, and they would be lost if the listener does not come to serve. Throws ListenError, and closes all.
 */
export function openListenSockets(shim: NativeShim, listener: Listener, options: OpenOptions): ListenSockets {
  const { former, keepsBoundPath, workers } = options;
  const wanted = options.address ?? listenAddress(listener.address);
  const isReusePort = former?.isReusePort ?? sharesPort(listener, wanted);
  const isShared = !isReusePort || !sharesPort(listener, wanted);
  const fds = [...(former?.fds ?? [])];
  const taken = fds.length;
  try {
    let address = former?.address ?? wanted;
    if (wanted.kind === AddressKind.Unix && taken === 0) {
      if (keepsBoundPath && isSocketBound(shim, encodeAddress(wanted))) throw new PathInUse();
      removeStaleSocket(wanted.path);
    }
    while (fds.length < (isShared ? 1 : workers)) {
      const fd = shim.openListenSocket(encodeAddress(address), socketOptions(listener, isReusePort));
      fds.push(fd);
      if (fds.length === 1) address = boundAddress(shim, fd, wanted);
    }
    const { lineage = { ofParent: undefined }, mode = 0 } = former ?? {};
    return { address, fds, isShared, isReusePort, mode, lineage };
  } catch (error) {
    for (const fd of fds) shim.closeDescriptor(fd);
    throw listenError(wanted, error);
  }
}

/** No sockets (bind_to_port: false). */
export function noSockets(listener: Listener): ListenSockets {
  const address = listenAddress(listener.address);
  return { address, fds: [], isShared: false, isReusePort: false, mode: 0, lineage: { ofParent: undefined } };
}

/** Whether a descriptor of any kind is a socket that is bound where `own` is. */
export function isBoundLike(shim: NativeShim, fd: number, own: number): boolean {
  try {
    return Buffer.compare(shim.boundAddress(fd), shim.boundAddress(own)) === 0;
  } catch {
    return false;
  }
}

/** What goes on listening is given another version, which has copies of the descriptors. */
export function copySockets(shim: NativeShim, sockets: ListenSockets): FormerSockets {
  const { address, fds, isReusePort, lineage, mode } = sockets;
  const copies: number[] = [];
  try {
    for (const fd of fds) copies.push(shim.duplicate(fd));
  } catch (error) {
    for (const fd of copies) shim.closeDescriptor(fd);
    throw listenError(address, error);
  }
  return { address, fds: copies, isReusePort, lineage, mode };
}

/** All sockets listen from now on, those that do already with the listener's backlog. Throws ListenError. */
export function startListening(shim: NativeShim, listener: Listener, sockets: ListenSockets): ListenSockets {
  try {
    // Before anybody can connect. Without a mode a version after one that had it gets what a new file would have.
    const mode = listener.address?.pipe?.mode ?? 0;
    if (mode !== sockets.mode) shim.setSocketMode(sockets.address.path, mode || 0o777 & ~currentUmask());
    for (const fd of sockets.fds) shim.listen(fd, backlogOf(listener));
    return { ...sockets, mode };
  } catch (error) {
    throw listenError(sockets.address, error);
  }
}

/** Sockets that another process has bound listen, as far as they can. */
export function listenIfPossible(shim: NativeShim, listener: Listener, fds: readonly number[]): void {
  for (const fd of fds) {
    try {
      shim.listen(fd, backlogOf(listener));
    } catch (error) {
      logger.warning(
        `a socket of listener '${shownName(listener.name ?? '')}' that a child process has bound cannot listen: ${explain(error)}`,
      );
    }
  }
}

/** Whether the kernel shares the listener's port out among sockets. */
export function wantsReusePort(listener: Listener): boolean {
  return sharesPort(listener, listenAddress(listener.address));
}

/** Whether sockets of the one are no use to the other, because only one of the two wants one for each worker. */
export function changesReusePort(before: Listener, after: Listener): boolean {
  const areIp = before.address?.pipe === undefined && after.address?.pipe === undefined;
  return areIp && wantsReusePort(before) !== wantsReusePort(after);
}

/** What of its sockets only binding them anew could change, in one text. */
export function socketTraits(listener: Listener): string {
  const { freebind, transparent, v6Only } = socketOptions(listener, false);
  return `${freebind},${transparent},${v6Only}`;
}

/** Of an IPv6 listener: it refuses IPv4-mapped peers. */
export function isV6Only(listener: Listener): boolean {
  return !(listener.address?.socket_address?.ipv4_compat ?? false);
}

/** Sockets of workers have the port together, and the kernel spreads connections. */
function sharesPort(listener: Listener, address: Address): boolean {
  return address.kind !== AddressKind.Unix && (listener.enable_reuse_port ?? listener.reuse_port ?? true);
}

function socketOptions(listener: Listener, reusePort: boolean): ListenSocketOptions {
  return {
    reusePort,
    freebind: listener.freebind ?? false,
    transparent: listener.transparent ?? false,
    v6Only: isV6Only(listener),
  };
}

/** An address that cannot be had, and why. */
export function listenError(address: Address, error: unknown): ListenError {
  const isInUse = (error as NodeJS.ErrnoException).code === 'EADDRINUSE';
  return new ListenError(`cannot listen on ${addressText(address)}: ${explain(error)}`, isInUse);
}

/** What bind() would say if it looked behind the file. */
class PathInUse extends Error {
  readonly code = 'EADDRINUSE';
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

function backlogOf(listener: Listener): number {
  return listener.tcp_backlog_size ?? largestBacklog();
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
