// Which listener has which address, now and when a change is done: two cannot have the same, and one may leave its own to another.

import type { Listener } from '../../../config/generated/api.js';
import { AddressKind, addressText } from '../../../io/addresses/address.js';
import { listenAddress } from '../version/listen-sockets.js';
import { bindsToPort, type ListenerSpec, type PrimaryListener } from '../version/primary-listener.js';
import { type ListenerStages, type PresentListeners, versionsOf } from './present-listeners.js';

/** What two listeners cannot both be bound to; undefined where the kernel chooses the port, or nothing is bound. */
export function boundAddressOf(config: Listener): string | undefined {
  if (!bindsToPort(config)) return undefined;
  const address = listenAddress(config.address);
  return address.kind !== AddressKind.Unix && address.port === 0 ? undefined : addressText(address);
}

/** What two listeners cannot both have: with port 0 the port is the one that the listener has got. */
export function wantedAddress(config: Listener, stages: ListenerStages): string | undefined {
  const kept = versionsOf(stages).find((version) => version.hasSockets && !leavesAddress(version, config));
  return boundAddressOf(config) ?? kept?.addressText;
}

/** Whether one of these has that address. */
export function isAddressTaken(address: string | undefined, versions: Iterable<PrimaryListener>): boolean {
  if (address === undefined) return false;
  for (const each of versions) if (each.hasSockets && each.addressText === address) return true;
  return false;
}

/** Whether a version is at one of these addresses. */
export function isAtOneOf(version: PrimaryListener, addresses: ReadonlySet<string | undefined>): boolean {
  return version.hasSockets && addresses.has(version.addressText);
}

/** Whether a version has no place in a configuration of its name: its address is free then. */
export function leavesAddress(version: PrimaryListener, config: Listener): boolean {
  return !bindsToPort(config) || !isAt(version, version.name, addressText(listenAddress(config.address)));
}

/** Whether a version has the address that a listener of this name is configured with: port 0 is the port that it has got. */
export function isAt(owner: PrimaryListener, name: string, wanted: string): boolean {
  if (owner.addressText === wanted) return true;
  return owner.name === name && addressText(listenAddress(owner.config.address)) === wanted;
}

/** Those of LDS that want an address which another one leaves when all of them are set, and those that leave it. */
export function tradingPlaces(set: readonly ListenerSpec[], present: PresentListeners): ListenerSpec[] {
  const holders = new Map<string, ListenerSpec>();
  for (const spec of set) {
    for (const version of versionsOf(present.stagesOf(spec.name))) {
      if (!version.spec.isStatic && leavesAddress(version, spec.config)) holders.set(version.addressText, spec);
    }
  }
  const trading = new Set<ListenerSpec>();
  for (const spec of set) {
    const holder = holders.get(wantedAddress(spec.config, present.stagesOf(spec.name)) ?? '');
    if (holder !== undefined && holder !== spec) trading.add(holder).add(spec);
  }
  return [...trading];
}
