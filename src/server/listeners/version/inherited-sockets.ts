// The listen sockets that a parent process has handed over, until listeners and the admin interface have taken theirs.

import { messageOf } from '../../../common/errors/errors.js';
import { type Address, AddressKind, addressOfText, addressText } from '../../../io/addresses/address.js';
import { isBoundTo } from '../../../io/addresses/bound-address.js';
import type { NativeShim } from '../../../io/shim.js';
import { getLogger } from '../../../log/logger.js';
import { peerText } from '../../../restart/peer-text.js';
import type { ReceivedSockets } from '../../../restart/received-sockets.js';

/** Sockets that go on listening where the parent bound them. */
export interface InheritedSocket {
  /** The parent's number of them. */
  readonly id: number;
  /** Where they listen: port 0 has become a port. */
  readonly address: Address;
  readonly fds: readonly number[];
  /** Further sockets can be bound to the address. */
  readonly isReusePort: boolean;
}

/** What a listener wants. */
export interface WantedSockets {
  readonly name: string;
  /** As configured. */
  readonly address: Address;
  /** Options of the sockets that cannot be changed once they are bound. */
  readonly traits: string;
  /** Of an IPv6 listener: it refuses IPv4-mapped peers. */
  readonly v6Only: boolean;
}

const logger = getLogger('main');

export class InheritedSockets {
  readonly #shim: NativeShim;
  #left: readonly ReceivedSockets[];
  readonly #taken: number[] = [];
  /** Lets the parent close its copies of the sockets with these numbers; resolves when it has. */
  onRelease: (ids: readonly number[]) => Promise<void> = async () => {};

  constructor(shim: NativeShim, sockets: readonly ReceivedSockets[]) {
    this.#shim = shim;
    this.#left = sockets;
  }

  /** Further ones have come. */
  add(sockets: readonly ReceivedSockets[]): void {
    this.#left = [...this.#left, ...sockets];
  }

  /** Numbers of the sockets that were taken, as the parent gave them. */
  get taken(): readonly number[] {
    return this.#taken;
  }

  /**
   * The sockets of a listener, which it owns now: those that are bound to its address; with port 0 those of the listener of
   * the same name. Undefined when there are none.
   */
  takeListener(wanted: WantedSockets): InheritedSocket | undefined {
    return this.#take(
      wanted,
      this.#left.find((each) => !each.isAdmin && fits(each, wanted)),
    );
  }

  /** The socket of the admin interface; undefined when the parent's listened elsewhere. */
  takeAdmin(address: Address, v6Only: boolean): InheritedSocket | undefined {
    const wanted = { name: '', address, traits: '', v6Only };
    return this.#take(
      wanted,
      this.#left.find((each) => each.isAdmin && fits(each, wanted)),
    );
  }

  /** Closes what nobody has taken: the parent serves what is queued there. */
  closeRest(): void {
    for (const { fds } of this.#left) for (const fd of fds) this.#shim.closeDescriptor(fd);
    this.#left = [];
  }

  /** What the parent says of its sockets is not enough: clients of another address would be served as if they had come to this one. */
  #take(wanted: WantedSockets, sockets: ReceivedSockets | undefined): InheritedSocket | undefined {
    if (sockets === undefined || sockets.fds.length === 0) return undefined;
    this.#left = this.#left.filter((each) => each !== sockets);
    const address = addressOf(wanted.address, sockets);
    const what = sockets.isAdmin ? 'the admin interface' : `listener '${peerText(sockets.name)}'`;
    const fds: number[] = [];
    const reasons: string[] = [];
    for (const fd of sockets.fds) {
      const reason = this.#whyNot(fd, address, wanted, sockets);
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

  #whyNot(fd: number, address: Address, { v6Only }: WantedSockets, sockets: ReceivedSockets): string | undefined {
    try {
      const facts = this.#shim.prepareListener(fd);
      if (!isBoundTo(facts.address, address)) return 'it is bound elsewhere';
      if (address.kind === AddressKind.Ip6 && facts.v6Only !== v6Only) return 'ipv4_compat differs';
      return sockets.isReusePort && !facts.reusePort ? 'it does not share its port' : undefined;
    } catch (error) {
      return REASONS[(error as NodeJS.ErrnoException).code ?? ''] ?? messageOf(error);
    }
  }
}

const REASONS: Readonly<Record<string, string>> = {
  ENOTSOCK: 'it is no socket',
  EPROTOTYPE: 'it is no TCP or Unix stream socket',
  EINVAL: 'it does not listen',
};

function fits({ name, configured, real, traits }: ReceivedSockets, wanted: WantedSockets): boolean {
  if (traits !== wanted.traits) return false;
  const text = addressText(wanted.address);
  return real === text || (configured === text && name === wanted.name);
}

/** Where the sockets have to be: of what the parent says, only the port counts that a listener with port 0 has got. */
function addressOf(wanted: Address, { real }: ReceivedSockets): Address {
  const isAnyPort = wanted.kind !== AddressKind.Unix && wanted.port === 0;
  return isAnyPort ? { ...wanted, port: addressOfText(real).port } : wanted;
}
