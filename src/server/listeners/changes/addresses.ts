// The addresses of listeners before and after a change: two listeners cannot share one, but one may release its address to
// another.

import { bindsToPort } from '../../../config/fields/binds-to-port.js';
import type { Listener } from '../../../config/generated/api.js';
import { AddressKind } from '../../../io/addresses/address.js';
import { claimText } from '../version/claimed-address.js';
import { listenerAddress } from '../version/listen-sockets.js';
import type { ListenerSpec, PrimaryListener } from '../version/primary-listener.js';
import { type ListenerStages, type PresentListeners, versionsOf } from './present-listeners.js';

/** Returns the address that no two listeners can bind; undefined when the kernel chooses the port, or nothing is bound. */
export function boundAddressOf(config: Listener): string | undefined {
  if (!bindsToPort(config)) return undefined;
  const address = listenerAddress(config);
  return address.kind !== AddressKind.Unix && address.port === 0 ? undefined : claimText(config, address);
}

/** Returns the address that the listener claims. For port 0 it has the port that the listener was given. */
export function claimedAddress(config: Listener, stages: ListenerStages): string | undefined {
  const kept = versionsOf(stages).find((version) => version.hasSockets && !releasesAddress(version, config));
  return boundAddressOf(config) ?? kept?.addressText;
}

/** Returns whether one of these versions has the address. */
export function isAddressTaken(address: string | undefined, versions: Iterable<PrimaryListener>): boolean {
  if (address === undefined) return false;
  for (const each of versions) if (each.hasSockets && each.addressText === address) return true;
  return false;
}

/** Returns whether a version has one of these addresses. */
export function hasOneOf(version: PrimaryListener, addresses: ReadonlySet<string | undefined>): boolean {
  return version.hasSockets && addresses.has(version.addressText);
}

/** Returns whether the new configuration with the version's name binds elsewhere: the version's address is free then. */
export function releasesAddress(version: PrimaryListener, config: Listener): boolean {
  return !bindsToPort(config) || !isAt(version, version.name, claimText(config, listenerAddress(config)));
}

/** Returns whether a version has the address configured for the listener `name`; for port 0 the port that it was given. */
export function isAt(owner: PrimaryListener, name: string, wanted: string): boolean {
  if (owner.addressText === wanted) return true;
  return owner.name === name && claimText(owner.config, listenerAddress(owner.config)) === wanted;
}

/** Returns the LDS listeners that take an address released by another one of `set`, and those that release it. */
export function addressSwaps(set: readonly ListenerSpec[], present: PresentListeners): ListenerSpec[] {
  const holders = new Map<string, ListenerSpec>();
  for (const spec of set) {
    for (const version of versionsOf(present.stagesOf(spec.name))) {
      if (!version.spec.isStatic && releasesAddress(version, spec.config)) holders.set(version.addressText, spec);
    }
  }
  const trading = new Set<ListenerSpec>();
  for (const spec of set) {
    const holder = holders.get(claimedAddress(spec.config, present.stagesOf(spec.name)) ?? '');
    if (holder !== undefined && holder !== spec) trading.add(holder).add(spec);
  }
  return [...trading];
}
