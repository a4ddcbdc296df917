// The listeners that there are, by name: the version that serves, and the update that is to take its place.

import type { InitManager } from '../../init/init-manager.js';
import type { ListenerSpec, PrimaryListener } from '../version/primary-listener.js';
import type { FormerListeners } from './former-listeners.js';
import type { ListenerUpdate } from './listener-update.js';
import { StoppedDirections } from './stopped-directions.js';

/** What there is of the listener of one name. */
export interface ListenerStages {
  /** What connections are given to. */
  readonly active?: PrimaryListener | undefined;
  /** What is not in use yet. */
  readonly warming?: ListenerUpdate | undefined;
}

export class PresentListeners {
  readonly active = new Map<string, PrimaryListener>();
  readonly warming = new Map<string, ListenerUpdate>();
  /** What updates have left, and still drains. */
  readonly formers: FormerListeners;
  /** Left while a child process began: the kernel goes on to give connections to its copies of their sockets. */
  readonly postponed: PrimaryListener[] = [];
  readonly stopped = new StoppedDirections();
  /** A child process serves in place of all of them. */
  isReplaced = false;
  /** By name: updates of LDS that wait for the end of that. */
  readonly held = new Map<string, ListenerSpec>();
  /** Connections are accepted: until then active listeners only get ready. */
  isRunning = false;
  /** Of the server, while that waits for what its listeners need. */
  serverInit: InitManager | undefined;

  constructor(formers: FormerListeners) {
    this.formers = formers;
  }

  stagesOf(name: string): ListenerStages {
    return { active: this.active.get(name), warming: this.warming.get(name) };
  }

  /** All that have sockets of their own. */
  *versions(): Generator<PrimaryListener> {
    yield* this.active.values();
    for (const { newVersion } of this.warming.values()) if (newVersion !== undefined) yield newVersion;
  }
}

/** How it is configured by now, be that in use or not; undefined: there is none of that name. */
export function latestOf({ active, warming }: ListenerStages): ListenerSpec | undefined {
  return (warming ?? active)?.spec;
}

/** Versions that have sockets of their own. */
export function versionsOf({ active, warming }: ListenerStages): PrimaryListener[] {
  return [active, warming?.newVersion].filter((version) => version !== undefined);
}
