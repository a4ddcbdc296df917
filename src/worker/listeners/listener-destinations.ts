// Finds the listener for a connection that has no socket of it: one that another listener has got in its place, by the address that the
// client connected to (use_original_dst), and one of this thread to an internal listener. As in Envoy, a listener at the exact address comes
// before one at the wildcard address of the family.

import type { Listener } from '../../config/generated/api.js';
import { type Address, addressText, ipAddress } from '../../io/addresses/address.js';
import { ActiveListener } from '../../listener/active-listener.js';
import type { WorkerListener } from '../../listener/worker-listener.js';

export class ListenerDestinations {
  readonly #listeners: () => Iterable<WorkerListener>;
  /** By address with port; undefined after a change. */
  #byAddress: ReadonlyMap<string, ActiveListener> | undefined;
  /** Internal listeners, by name; undefined after a change. */
  #internal: ReadonlyMap<string, ActiveListener> | undefined;

  /** @param listeners in the order of their versions */
  constructor(listeners: () => Iterable<WorkerListener>) {
    this.#listeners = listeners;
  }

  /** Called when a listener was added, stopped or removed. */
  changed(): void {
    this.#byAddress = undefined;
    this.#internal = undefined;
  }

  /** Returns undefined if no listener that serves connections has this address. */
  listenerAt(destination: Address): ActiveListener | undefined {
    this.#byAddress ??= this.#index();
    return this.#byAddress.get(addressText(destination)) ?? this.#byAddress.get(wildcardOf(destination));
  }

  /**
   * Returns the internal listener of that name; undefined if there is none. As in Envoy, a stopped one still serves the requests of clients
   * that are connected, until it is removed.
   */
  internalListener(name: string): ActiveListener | undefined {
    this.#internal ??= this.#indexInternal();
    return this.#internal.get(name);
  }

  #indexInternal(): ReadonlyMap<string, ActiveListener> {
    const byName = new Map<string, ActiveListener>();
    for (const listener of this.#listeners()) {
      if (!(listener instanceof ActiveListener) || !listener.isInternal) continue;
      const other = byName.get(listener.name);
      if (listener.isServing || other?.isServing !== true) byName.set(listener.name, listener);
    }
    return byName;
  }

  #index(): ReadonlyMap<string, ActiveListener> {
    const byAddress = new Map<string, ActiveListener>();
    for (const listener of this.#listeners()) {
      // UDP listeners have no connections.
      if (!(listener instanceof ActiveListener) || !listener.isServing || listener.address === undefined) continue;
      byAddress.set(addressText(listener.address), listener);
    }
    return byAddress;
  }
}

/** Returns the configured address; undefined for Unix sockets, and where the kernel chooses the port. */
export function addressOfListener({ address }: Listener): Address | undefined {
  const { address: ip = '', port_value: port = 0 } = address?.socket_address ?? {};
  return port === 0 ? undefined : ipAddress(ip, port);
}

function wildcardOf({ ip, port }: Address): string {
  return ip.includes(':') ? `[::]:${port}` : `0.0.0.0:${port}`;
}
