// Makes a node server listen where the configuration says, or on a socket that was bound before this process.

import { chmodSync, statSync } from 'node:fs';
import { type AddressInfo, connect, type ListenOptions, type Server } from 'node:net';
import { dirname } from 'node:path';
import { BatonError, messageOf } from '../../../common/errors/errors.js';
import { type Address, AddressKind, addressText, encodeAddress } from '../../../io/addresses/address.js';
import { removeStaleSocket } from '../../../io/addresses/socket-file.js';
import { loadShim } from '../../../io/shim.js';

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

/** Resolves with the real address: port 0 has become a port. Rejects with a BatonError. */
export async function listen(server: Server, target: ListenTarget): Promise<Address> {
  const { address } = target;
  try {
    if ('fd' in target) {
      await started(server, { fd: target.fd });
    } else if (address.kind === AddressKind.Unix) {
      if (address.path.startsWith('@')) await listenOnName(server, address);
      else await listenOnPath(server, address.path, target.mode ?? 0);
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

/** The abstract name as it is: Node fills it up with NULs, and other programs would not find it. */
async function listenOnName(server: Server, address: Address): Promise<void> {
  const shim = loadShim();
  const options = { reusePort: false, freebind: false, transparent: false, v6Only: true };
  const fd = shim.openListenSocket(encodeAddress(address), options);
  try {
    shim.listen(fd, BACKLOG);
    await started(server, { fd });
  } catch (error) {
    shim.closeDescriptor(fd);
    throw error;
  }
}

async function listenOnPath(server: Server, path: string, mode: number): Promise<void> {
  // Where that is missing, Node would speak of permissions.
  statSync(dirname(path));
  try {
    await started(server, { path });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EADDRINUSE' || (await isAnswered(path))) throw error;
    removeStaleSocket(path);
    await started(server, { path });
  }
  if (mode > 0) chmodSync(path, mode);
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
export function isAnswered(path: string): Promise<boolean> {
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
