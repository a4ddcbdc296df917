// Makes a node server listen where the configuration says, or on a socket that was bound before this process.

import { lstatSync, statSync } from 'node:fs';
import { type AddressInfo, connect, type ListenOptions, type Server } from 'node:net';
import { dirname } from 'node:path';
import { BatonError, messageOf } from '../../../common/errors/errors.js';
import { type Address, AddressKind, addressText, encodeAddress } from '../../../io/addresses/address.js';
import { removeSocketFile, removeStaleSocket } from '../../../io/addresses/socket-file.js';
import { loadShim, type NativeShim } from '../../../io/shim.js';

export type ListenTarget =
  /**
   * Binds. `mode`: permissions of a Unix socket. The file of a Unix socket goes away with the server. `ipv4Compat`: an IPv6
   * address takes connections of IPv4 too.
   */
  | { readonly address: Address; readonly mode?: number; readonly ipv4Compat?: boolean }
  /** Takes over a bound stream socket, which then belongs to the server. A Unix socket's file stays. */
  | { readonly address: Address; readonly fd: number };

/** As Node's own. */
const BACKLOG = 511;
const SOCKET_OPTIONS = { reusePort: false, freebind: false, transparent: false, v6Only: true };

/** Resolves with the real address: port 0 has become a port. Rejects with a BatonError. */
export async function listen(server: Server, target: ListenTarget): Promise<Address> {
  const { address } = target;
  try {
    if ('fd' in target) {
      await started(server, { fd: target.fd });
    } else if (address.kind === AddressKind.Unix) {
      await listenOnUnix(server, address, target.mode ?? 0);
    } else {
      await started(server, { host: address.ip, port: address.port, ipv6Only: target.ipv4Compat !== true });
    }
  } catch (error) {
    throw new BatonError('CONFIG_INVALID', `cannot listen on ${addressText(address)}: ${messageOf(error)}`, {
      where: 'admin.address',
      cause: error,
    });
  }
  const bound = server.address();
  return isAddressInfo(bound) ? { ...address, port: bound.port } : address;
}

/**
 * By a descriptor of the shim: Node fills abstract names up with NULs, so that other programs would not find them, and goes behind links
 * of strangers. The file of a path goes with the server.
 */
async function listenOnUnix(server: Server, address: Address, mode: number): Promise<void> {
  const shim = loadShim();
  const { path } = address;
  const fd = await openUnixSocket(shim, address, mode);
  try {
    const inode = hasFile(address) ? lstatSync(path).ino : undefined;
    shim.listen(fd, BACKLOG);
    await started(server, { fd });
    if (inode !== undefined) server.once('close', () => removeSocketFile(path, inode));
  } catch (error) {
    shim.closeDescriptor(fd);
    throw error;
  }
}

/** A bound socket, whose file has these permissions, where `mode` is above 0. Rejects with an Error. */
export async function openUnixSocket(shim: NativeShim, address: Address, mode: number): Promise<number> {
  const raw = encodeAddress(address);
  // Where that is missing, the error would not name it.
  if (hasFile(address)) statSync(dirname(address.path));
  let fd: number;
  try {
    fd = shim.openListenSocket(raw, SOCKET_OPTIONS);
  } catch (error) {
    if (!hasFile(address) || (error as NodeJS.ErrnoException).code !== 'EADDRINUSE' || (await isAnswered(address.path)))
      throw error;
    // A process that was killed has left its file behind.
    removeStaleSocket(address.path);
    fd = shim.openListenSocket(raw, SOCKET_OPTIONS);
  }
  if (hasFile(address) && mode > 0) shim.setSocketMode(address.path, mode);
  return fd;
}

function hasFile({ path }: Address): boolean {
  return !path.startsWith('@');
}

function started(server: Server, options: ListenOptions & { readonly fd?: number }): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(options, () => {
      server.off('error', reject);
      resolve();
    });
  });
}

/** Whether somebody listens at the path of a Unix socket. */
function isAnswered(path: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(path);
    socket.on('connect', () => {
      socket.destroy();
      resolve(true);
    });
    socket.on('error', (error: NodeJS.ErrnoException) => resolve(error.code !== 'ECONNREFUSED'));
  });
}

function isAddressInfo(bound: AddressInfo | string | null): bound is AddressInfo {
  return bound !== null && typeof bound === 'object' && typeof bound.port === 'number';
}
