// The listen sockets that a parent process has handed over, until listeners and the admin interface have taken theirs.

import { messageOf } from '../../../common/errors/errors.js';
import { type Address, AddressKind, addressOfText, addressText } from '../../../io/addresses/address.js';
import { isBoundTo } from '../../../io/addresses/bound-address.js';
import type { NativeShim } from '../../../io/shim.js';
import { getLogger } from '../../../log/logger.js';
import { peerText } from '../../../restart/peer-text.js';
import type { ReceivedSockets } from '../../../restart/received-sockets.js';
import { claimedText, claimOf } from './claimed-address.js';

/** Sockets that the parent has bound and that stay in use. */
export interface InheritedSocket {
  /** The parent's number for them. */
  readonly id: number;
  /** The bound address: port 0 has become a port. */
  readonly address: Address;
  readonly fds: readonly number[];
  /** Further sockets can be bound to the address. */
  readonly isReusePort: boolean;
}

/** The sockets that a listener needs. */
export interface SocketRequest {
  readonly name: string;
  /** The configured address. */
  readonly address: Address;
  /** Socket options that cannot be changed after bind. */
  readonly traits: string;
  /** An IPv6 listener refuses IPv4-mapped peers. */
  readonly v6Only: boolean;
  /** They are UDP sockets. */
  readonly isDatagram: boolean;
}

const logger = getLogger('main');

export class InheritedSockets {
  readonly #shim: NativeShim;
  #available: readonly ReceivedSockets[];
  readonly #taken: number[] = [];
  /** Makes the parent close its copies of the sockets with these numbers. Resolves when it has. */
  onRelease: (ids: readonly number[]) => Promise<void> = async () => {};

  constructor(shim: NativeShim, sockets: readonly ReceivedSockets[]) {
    this.#shim = shim;
    this.#available = sockets;
  }

  /** Adds sockets that have arrived later. */
  add(sockets: readonly ReceivedSockets[]): void {
    this.#available = [...this.#available, ...sockets];
  }

  /** The parent's numbers of the sockets that were taken. */
  get taken(): readonly number[] {
    return this.#taken;
  }

  /**
   * Returns the sockets bound to a listener's address, for port 0 those of the listener with the same name. The caller owns them.
   * Undefined when there are none.
   */
  takeListener(wanted: SocketRequest): InheritedSocket | undefined {
    return this.#take(
      wanted,
      this.#available.find((each) => !each.isAdmin && fits(each, wanted)),
    );
  }

  /** Returns the socket of the admin interface; undefined when the parent's has another address. */
  takeAdmin(address: Address, v6Only: boolean): InheritedSocket | undefined {
    const wanted = { name: '', address, traits: '', v6Only, isDatagram: false };
    return this.#take(
      wanted,
      this.#available.find((each) => each.isAdmin && fits(each, wanted)),
    );
  }

  /** Closes what was not taken: the parent serves the connections queued there. */
  closeRest(): void {
    for (const { fds } of this.#available) for (const fd of fds) this.#shim.closeDescriptor(fd);
    this.#available = [];
  }

  /**
   * Verifies the sockets: if the parent's description were wrong, clients of another address would be served as if they used this
   * one.
   */
  #take(wanted: SocketRequest, sockets: ReceivedSockets | undefined): InheritedSocket | undefined {
    if (sockets === undefined || sockets.fds.length === 0) return undefined;
    this.#available = this.#available.filter((each) => each !== sockets);
    const address = addressOf(wanted.address, sockets);
    const what = sockets.isAdmin ? 'the admin interface' : `listener '${peerText(sockets.name)}'`;
    const fds: number[] = [];
    const reasons: string[] = [];
    for (const fd of sockets.fds) {
      const reason = this.#refusalOf(fd, address, wanted, sockets);
      if (reason === undefined) fds.push(fd);
      else {
        reasons.push(reason);
        this.#shim.closeDescriptor(fd);
      }
    }
    if (reasons.length > 0) {
      const count = `${reasons.length} of ${sockets.fds.length} sockets`;
      logger.error(
        `${count} of the parent process for ${what} on ${addressText(address)} refused: ${[...new Set(reasons)].join(', ')}`,
      );
    }
    if (fds.length === 0) return undefined;
    const { id, isReusePort } = sockets;
    this.#taken.push(id);
    return { id, address, fds, isReusePort };
  }

  #refusalOf(fd: number, address: Address, wanted: SocketRequest, sockets: ReceivedSockets): string | undefined {
    try {
      const facts = this.#shim.prepareListener(fd);
      if (facts.isDatagram !== wanted.isDatagram) return REASONS['EPROTOTYPE'];
      if (!isBoundTo(facts.address, address)) return 'it is bound elsewhere';
      if (address.kind === AddressKind.Ip6 && facts.v6Only !== wanted.v6Only) return 'ipv4_compat differs';
      return sockets.isReusePort && !facts.reusePort ? 'it does not share its port' : undefined;
    } catch (error) {
      return REASONS[(error as NodeJS.ErrnoException).code ?? ''] ?? messageOf(error);
    }
  }
}

const REASONS: Readonly<Record<string, string>> = {
  ENOTSOCK: 'it is not a socket',
  EPROTOTYPE: 'it is a socket of another protocol',
  EINVAL: 'it does not listen',
};

function fits({ name, configured, real, traits }: ReceivedSockets, wanted: SocketRequest): boolean {
  if (traits !== wanted.traits) return false;
  const text = claimOf(wanted.address, wanted.isDatagram);
  return real === text || (configured === text && name === wanted.name);
}

/** Returns the address that the sockets must have. Of the parent's description, only the port given for port 0 is trusted. */
function addressOf(wanted: Address, { real }: ReceivedSockets): Address {
  const isAnyPort = wanted.kind !== AddressKind.Unix && wanted.port === 0;
  return isAnyPort ? { ...wanted, port: addressOfText(claimedText(real)).port } : wanted;
}
