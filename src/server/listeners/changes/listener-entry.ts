// What there is of the listener of one name: the version that serves, and the update that is to take its place.

import type { PrimaryListener } from '../version/primary-listener.js';
import type { ListenerUpdate } from './listener-update.js';

export interface ListenerEntry {
  readonly name: string;
  readonly isStatic: boolean;
  /** What connections are given to. */
  readonly active: PrimaryListener | undefined;
  readonly warming: ListenerUpdate | undefined;
}

/** Versions that have sockets of their own. */
export function versionsOf({ active, warming }: Partial<ListenerEntry> = {}): PrimaryListener[] {
  return [active, warming?.newVersion].filter((version) => version !== undefined);
}
