// Makes a node server listen on a configured address, or on a socket bound before this process started.

import { lstatSync, statSync } from 'node:fs';
import { type AddressInfo, connect, type ListenOptions, type Server } from 'node:net';
import { dirname } from 'node:path';
import { BatonError, messageOf } from '../../../common/errors/errors.js';
import { type Address, AddressKind, addressText, encodeAddress } from '../../../io/addresses/address.js';
import { removeSocketFile, removeStaleSocket } from '../../../io/addresses/socket-file.js';
import { loadShim, type NativeShim } from '../../../io/shim.js';

export type ListenTarget =
  /**
   * Binds. `mode`: permissions of a Unix socket, whose file is removed with the server. `ipv4Compat`: an IPv6 address
   * accepts IPv4 connections too.
   */
  | { readonly address: Address; readonly mode?: number; readonly ipv4Compat?: boolean }
  /** Takes over a bound stream socket, which then belongs to the server. A Unix socket's file is kept. */
  | { readonly address: Address; readonly fd: number };

/** The default of Node. */
const BACKLOG = 511;
const SOCKET_OPTIONS = { reusePort: false, freebind: false, transparent: false, v6Only: true };

/** Resolves with the bound address, with the actual port for port 0. Rejects with a BatonError. */
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
 * Listens with a descriptor of the shim: Node pads abstract names with NULs, so that other programs cannot find them, and
 * follows links of other users. The file of a path is removed with the server.
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

/** Returns a bound socket, whose file gets the permissions `mode` if that is above 0. Rejects with an Error. */
export async function openUnixSocket(shim: NativeShim, address: Address, mode: number): Promise<number> {
  const raw = encodeAddress(address);
  // If the directory is missing, the error of bind() would not contain its name.
  if (hasFile(address)) statSync(dirname(address.path));
  let fd: number;
  try {
    fd = shim.openListenSocket(raw, SOCKET_OPTIONS);
  } catch (error) {
    if (!hasFile(address) || (error as NodeJS.ErrnoException).code !== 'EADDRINUSE' || (await isAnswered(address.path)))
      throw error;
    // A killed process has left its file.
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

/** Returns whether a process listens on a Unix socket. */
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
