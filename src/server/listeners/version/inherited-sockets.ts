// The listen sockets that a parent process has handed over, until listeners and the admin interface have taken theirs.

import { type Address, addressOfText } from '../../../io/addresses/address.js';
import type { NativeShim } from '../../../io/shim.js';
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
  /** As configured, in addressText() form. */
  readonly address: string;
  /** Options of the sockets that cannot be changed once they are bound. */
  readonly traits: string;
}

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
    return this.#take(this.#left.find((each) => !each.isAdmin && fits(each, wanted)));
  }

  /** The socket of the admin interface; undefined when the parent's listened elsewhere. */
  takeAdmin(address: string): InheritedSocket | undefined {
    return this.#take(this.#left.find((each) => each.isAdmin && fits(each, { name: '', address, traits: '' })));
  }

  /** Closes what nobody has taken: the parent serves what is queued there. */
  closeRest(): void {
    for (const { fds } of this.#left) for (const fd of fds) this.#shim.closeDescriptor(fd);
    this.#left = [];
  }

  #take(sockets: ReceivedSockets | undefined): InheritedSocket | undefined {
    if (sockets === undefined || sockets.fds.length === 0) return undefined;
    this.#left = this.#left.filter((each) => each !== sockets);
    this.#taken.push(sockets.id);
    const { fds, id, isReusePort, real } = sockets;
    return { id, address: addressOfText(real), fds, isReusePort };
  }
}

function fits({ name, configured, real, traits }: ReceivedSockets, wanted: WantedSockets): boolean {
  if (traits !== wanted.traits) return false;
  return real === wanted.address || (configured === wanted.address && name === wanted.name);
}
