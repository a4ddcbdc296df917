// Listen sockets. The primary creates and owns them; workers accept on copies, so that a worker that dies takes none with it.

import { readFileSync } from 'node:fs';
import { currentUmask } from '../../../common/process/umask.js';
import { shownName } from '../../../common/text/shown.js';
import { isUdp } from '../../../config/fields/udp.js';
import type { Address as AddressConfig, Listener } from '../../../config/generated/api.js';
import {
  type Address,
  AddressKind,
  addressText,
  decodeSockaddr,
  encodeAddress,
  internalAddress,
  ipAddress,
} from '../../../io/addresses/address.js';
import { isSocketBound, removeStaleSocket } from '../../../io/addresses/socket-file.js';
import type { ListenSocketOptions, NativeShim } from '../../../io/shim.js';
import { getLogger } from '../../../log/logger.js';
import type { InheritedSocket } from './inherited-sockets.js';
import { socketOptionsAt } from './socket-options.js';

const logger = getLogger('main');

/** The sockets of one listener. */
export interface ListenSockets {
  /** The bound address: port 0 has become a port. */
  readonly address: Address;
  /** One for each worker, or some for all; from a parent process as many as it had. */
  readonly fds: readonly number[];
  /** All workers accept on all of them. */
  readonly isShared: boolean;
  /** Further sockets can be bound to the address. */
  readonly isReusePort: boolean;
  /** Permissions set here on the file of a Unix socket; 0 when they were not set. */
  readonly mode: number;
  readonly lineage: SocketLineage;
}

/** Shared by versions of a listener that have the same sockets. */
export interface SocketLineage {
  /** Where the first of the sockets came from: a parent process that has copies of all; its number for them, and their count. */
  readonly ofParent: { readonly id: number; readonly count: number } | undefined;
}

/** Bound sockets of an earlier version of the listener, or of a parent process. */
export interface ReusedSockets extends Omit<InheritedSocket, 'id'> {
  readonly mode: number;
  readonly lineage: SocketLineage;
}

/** The address cannot be bound. The message has the address and the reason. */
export class ListenError extends Error {
  readonly code = 'ERR_LISTEN';
  /** Another process or listener has the address, and may release it. */
  readonly isInUse: boolean;

  constructor(message: string, isInUse = false) {
    super(message);
    this.isInUse = isInUse;
  }
}

export interface OpenOptions {
  /** Number of sockets when the kernel distributes connections among sockets (SO_REUSEPORT). */
  readonly workers: number;
  /** Sockets to take over: the result owns their descriptors. */
  readonly reused: ReusedSockets | undefined;
  /** The address to bind; undefined for the configured address. */
  readonly address: Address | undefined;
  /** A path with another process's bound Unix socket counts as in use. Otherwise its file is replaced. */
  readonly keepsBoundPath: boolean;
}

/**
 * Binds a listener's sockets. Those bound in addition to `reused` listen later: a listening socket receives connections at once,
 * which would be lost if the listener failed before it serves. Throws ListenError, with everything closed.
 */
export function openListenSockets(shim: NativeShim, listener: Listener, options: OpenOptions): ListenSockets {
  const { reused, keepsBoundPath, workers } = options;
  const wanted = options.address ?? listenerAddress(listener);
  const isReusePort = reused?.isReusePort ?? sharesPort(listener, wanted);
  const isShared = !isReusePort || !sharesPort(listener, wanted);
  const fds = [...(reused?.fds ?? [])];
  const taken = fds.length;
  try {
    // Workers would get datagrams of each other's sessions from one socket.
    if (isUdp(listener) && workers > 1 && isShared) throw new ListenError(UNSTABLE);
    let address = reused?.address ?? wanted;
    if (wanted.kind === AddressKind.Unix && taken === 0) {
      if (keepsBoundPath && isSocketBound(shim, encodeAddress(wanted))) throw new PathInUse();
      removeStaleSocket(wanted.path);
    }
    while (fds.length < (isShared ? 1 : workers)) {
      const fd = shim.openListenSocket(encodeAddress(address), socketOptions(listener, isReusePort, address));
      fds.push(fd);
      for (const option of socketOptionsAt(listener.socket_options, 'STATE_BOUND', address, isUdp(listener)))
        shim.setSocketOption(fd, option);
      if (fds.length === 1) address = boundAddress(shim, fd, wanted);
    }
    const { lineage = { ofParent: undefined }, mode = 0 } = reused ?? {};
    return { address, fds, isShared, isReusePort, mode, lineage };
  } catch (error) {
    for (const fd of fds) shim.closeDescriptor(fd);
    throw error instanceof ListenError ? error : listenError(wanted, error);
  }
}

/** In Envoy's words. It also answers sockets of a parent process that were bound without the option. */
const UNSTABLE =
  'Listening on UDP when concurrency is > 1 without the SO_REUSEPORT socket option results in unstable packet proxying. ' +
  'Configure the reuse_port listener option or set concurrency = 1.';

/** Returns the absence of sockets (bind_to_port: false). */
export function noSockets(listener: Listener): ListenSockets {
  const address = listenerAddress(listener);
  return { address, fds: [], isShared: false, isReusePort: false, mode: 0, lineage: { ofParent: undefined } };
}

/** Returns whether a descriptor of any kind is a socket bound to the same address as `own`. */
export function isBoundLike(shim: NativeShim, fd: number, own: number): boolean {
  try {
    return Buffer.compare(shim.boundAddress(fd), shim.boundAddress(own)) === 0;
  } catch {
    return false;
  }
}

/** Returns duplicates of the descriptors for another version, so that the sockets stay in use. */
export function copySockets(shim: NativeShim, sockets: ListenSockets): ReusedSockets {
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

/** Makes all sockets listen, and sets the listener's backlog on those that do already. Throws ListenError. */
export function startListening(shim: NativeShim, listener: Listener, sockets: ListenSockets): ListenSockets {
  try {
    // Before any client can connect. A version without a mode, after one with a mode, gets the permissions of a new file.
    const mode = listener.address?.pipe?.mode ?? 0;
    if (mode !== sockets.mode) shim.setSocketMode(sockets.address.path, mode || 0o777 & ~currentUmask());
    const options = socketOptionsAt(listener.socket_options, 'STATE_LISTENING', sockets.address, isUdp(listener));
    for (const fd of sockets.fds) {
      if (!isUdp(listener)) shim.listen(fd, backlogOf(listener));
      for (const option of options) shim.setSocketOption(fd, option);
    }
    return { ...sockets, mode };
  } catch (error) {
    throw listenError(sockets.address, error);
  }
}

/** Makes sockets that another process has bound listen; failures are logged. */
export function listenIfPossible(shim: NativeShim, listener: Listener, fds: readonly number[]): void {
  if (isUdp(listener)) return;
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

/** Returns whether each worker of the listener has its own socket on the same port. */
export function usesReusePort(listener: Listener): boolean {
  return sharesPort(listener, listenerAddress(listener));
}

/** Returns whether only one of the two configurations has a socket for each worker: neither can use the other's sockets then. */
export function changesReusePort(before: Listener, after: Listener): boolean {
  const areIp = before.address?.pipe === undefined && after.address?.pipe === undefined;
  return areIp && usesReusePort(before) !== usesReusePort(after);
}

/** Returns the socket options that only a new bind could change, as one text. */
export function socketTraits(listener: Listener): string {
  const { freebind, transparent, keepalive, v6Only } = socketOptions(listener, false, listenerAddress(listener));
  const traits = `${freebind},${transparent},${v6Only}`;
  const { socket_options: options = [] } = listener;
  return keepalive === undefined && options.length === 0 ? traits : JSON.stringify([traits, keepalive, options]);
}

/** Returns whether an IPv6 listener refuses IPv4-mapped peers. */
export function isV6Only(listener: Listener): boolean {
  return !(listener.address?.socket_address?.ipv4_compat ?? false);
}

/** Returns whether the workers' sockets share the port, so that the kernel distributes connections. */
function sharesPort(listener: Listener, address: Address): boolean {
  return address.kind !== AddressKind.Unix && (listener.enable_reuse_port ?? listener.reuse_port ?? true);
}

function socketOptions(listener: Listener, reusePort: boolean, address: Address): ListenSocketOptions {
  // As in Envoy, it has no effect on UDP sockets.
  const keepalive = isUdp(listener) ? undefined : listener.tcp_keepalive;
  return {
    keepalive: keepalive && {
      idle: keepalive.keepalive_time,
      interval: keepalive.keepalive_interval,
      probes: keepalive.keepalive_probes,
    },
    isDatagram: isUdp(listener),
    others: socketOptionsAt(listener.socket_options, 'STATE_PREBIND', address, isUdp(listener)),
    reusePort,
    freebind: listener.freebind ?? false,
    transparent: listener.transparent ?? false,
    v6Only: isV6Only(listener),
  };
}

/** Returns the error for an address that cannot be bound. */
export function listenError(address: Address, error: unknown): ListenError {
  const isInUse = (error as NodeJS.ErrnoException).code === 'EADDRINUSE';
  return new ListenError(`cannot listen on ${addressText(address)}: ${explain(error)}`, isInUse);
}

/** The error that bind() would return if it checked for a listener behind the file. */
class PathInUse extends Error {
  readonly code = 'EADDRINUSE';
}

/** Returns the configured address of a listener. That of an internal one is its name. */
export function listenerAddress({ address, internal_listener: internal, name = '' }: Listener): Address {
  return internal === undefined ? listenAddress(address) : internalAddress(name);
}

/** Returns the configured address of the admin interface, or of a listener that is not internal. */
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
  return listener.tcp_backlog_size ?? maxBacklog();
}

/** Returns the kernel's limit. */
function maxBacklog(): number {
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
