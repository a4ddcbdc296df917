// The socket of an admin interface, which can be handed over to the process of the next epoch.

import { lstatSync } from 'node:fs';
import { type ListenTarget, openUnixSocket } from '../../admin/http/connections/listen.js';
import { messageOf } from '../../common/errors/errors.js';
import type { Address as AddressConfig, Admin, SocketOption_SocketState } from '../../config/generated/api.js';
import { type Address, AddressKind, addressText, encodeAddress } from '../../io/addresses/address.js';
import { removeSocketFile } from '../../io/addresses/socket-file.js';
import type { NativeShim } from '../../io/shim.js';
import { getLogger } from '../../log/logger.js';
import type { Offer } from '../../restart/parent-end.js';
import type { InheritedSockets } from '../listeners/version/inherited-sockets.js';
import { listenAddress, listenError } from '../listeners/version/listen-sockets.js';
import { socketOptionsAt } from '../listeners/version/socket-options.js';

const logger = getLogger('admin');

export class AdminSocket {
  /** The parent process listens on this socket. */
  readonly isInherited: boolean;
  readonly #shim: NativeShim;
  readonly #configured: Address;
  readonly #address: Address;
  /** Permissions of the socket file; 0 leaves them unchanged. */
  readonly #mode: number;
  readonly #fd: number;
  /** Inode of the socket file. Undefined without a file, and while the parent owns it. */
  #inode: number | undefined;
  #isOpen = true;
  /** A child process answers on this socket. */
  #isHandedOver = false;

  private constructor(shim: NativeShim, configured: Address, mode: number, fd: number, inherited: Address | undefined) {
    this.#shim = shim;
    this.#configured = configured;
    this.#mode = mode;
    this.#address = inherited ?? configured;
    this.#fd = fd;
    this.isInherited = inherited !== undefined;
    if (!this.isInherited) this.ownFile();
  }

  /** Binds, or takes the socket of `parent`. Rejects with ListenError. */
  static async open(shim: NativeShim, config: Admin, parent: InheritedSockets | undefined): Promise<AdminSocket> {
    const address = listenAddress(config.address);
    const inherited = parent?.takeAdmin(address, isV6Only(config.address));
    const fd = inherited?.fds[0] ?? (await bind(shim, address, config));
    return new AdminSocket(shim, address, config.address?.pipe?.mode ?? 0, fd, inherited?.address);
  }

  /** Makes this process the owner of the Unix socket's file. */
  ownFile(): void {
    const { path } = this.#address;
    if (isFile(this.#address)) this.#inode = lstatSync(path, { throwIfNoEntry: false })?.ino;
    if (this.#inode === undefined || !this.isInherited || this.#mode === 0) return;
    try {
      this.#shim.setSocketMode(path, this.#mode);
    } catch (error) {
      // The file is that of another user's parent. The server has connections by now; those are more important.
      logger.error(`cannot set the permissions of the admin socket: ${messageOf(error)}`);
    }
  }

  /** Returns the target for a server to listen on, with a duplicate of the descriptor that the server owns. */
  target(): ListenTarget {
    return { address: this.#address, fd: this.#shim.duplicate(this.#fd) };
  }

  /**
   * Returns the offer for a child. `real`: the address of the server; the descriptor stays with this object. Undefined when
   * closed.
   */
  offer(id: number, real: Address): Offer | undefined {
    if (!this.#isOpen) return undefined;
    const configured = addressText(this.#configured);
    return {
      id,
      isAdmin: true,
      name: '',
      configured,
      real: addressText(real),
      traits: '',
      isReusePort: false,
      fds: [this.#fd],
    };
  }

  /** Called when a child process answers on this socket and owns its file. The socket stays open for reclaim(). */
  handOver(): void {
    this.#isHandedOver = true;
  }

  /** Called when that process is dead. Returns whether clients still reach this socket: it is open and its file is unchanged. */
  reclaim(): boolean {
    this.#isHandedOver = false;
    if (!this.#isOpen || !isFile(this.#address)) return this.#isOpen;
    const isPresent = lstatSync(this.#address.path, { throwIfNoEntry: false })?.ino === this.#inode;
    if (isPresent) this.ownFile();
    return isPresent;
  }

  close(): void {
    if (!this.#isOpen) return;
    this.#isOpen = false;
    if (!this.#isHandedOver && this.#inode !== undefined) removeSocketFile(this.#address.path, this.#inode);
    this.#shim.closeDescriptor(this.#fd);
  }
}

async function bind(shim: NativeShim, address: Address, { address: config, socket_options }: Admin): Promise<number> {
  const at = (state: SocketOption_SocketState) => socketOptionsAt(socket_options, state, address);
  let fd: number | undefined;
  try {
    const before = at('STATE_PREBIND');
    const after = [...at('STATE_BOUND'), ...at('STATE_LISTENING')];
    if (address.kind === AddressKind.Unix) {
      fd = await openUnixSocket(shim, address, config?.pipe?.mode ?? 0);
      after.unshift(...before);
    } else {
      const options = {
        reusePort: false,
        freebind: false,
        transparent: false,
        v6Only: isV6Only(config),
        others: before,
      };
      fd = shim.openListenSocket(encodeAddress(address), options);
    }
    for (const option of after) shim.setSocketOption(fd, option);
    return fd;
  } catch (error) {
    if (fd !== undefined) shim.closeDescriptor(fd);
    throw listenError(address, error);
  }
}

function isV6Only(config: AddressConfig | undefined): boolean {
  return config?.socket_address?.ipv4_compat !== true;
}

function isFile({ kind, path }: Address): boolean {
  return kind === AddressKind.Unix && !path.startsWith('@');
}
