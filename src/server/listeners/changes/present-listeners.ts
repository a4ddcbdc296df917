// The present listeners by name: the version that serves, and the update that will replace it.

import type { InitManager } from '../../init/init-manager.js';
import type { ListenerSpec, PrimaryListener } from '../version/primary-listener.js';
import type { DrainingListeners } from './draining-listeners.js';
import type { ListenerUpdate } from './listener-update.js';
import { StoppedDirections } from './stopped-directions.js';

/** The stages of one listener. */
export interface ListenerStages {
  /** The version that receives connections. */
  readonly active?: PrimaryListener | undefined;
  /** The update that is not in use yet. */
  readonly warming?: ListenerUpdate | undefined;
}

export class PresentListeners {
  readonly active = new Map<string, PrimaryListener>();
  readonly warming = new Map<string, ListenerUpdate>();
  /** What updates have replaced and still drains. */
  readonly draining: DrainingListeners;
  /**
   * Versions replaced while a child process was starting: the kernel still gives connections to the child's copies of their
   * sockets.
   */
  readonly postponed: PrimaryListener[] = [];
  readonly stopped = new StoppedDirections();
  /** A child process serves in place of this one. */
  isReplaced = false;
  /** LDS updates by name that wait for the end of that. */
  readonly held = new Map<string, ListenerSpec>();
  /** Connections are accepted; before that, active listeners only warm. */
  isRunning = false;
  /** The server's init manager, while the server waits for its listeners. */
  serverInit: InitManager | undefined;

  constructor(draining: DrainingListeners) {
    this.draining = draining;
  }

  stagesOf(name: string): ListenerStages {
    return { active: this.active.get(name), warming: this.warming.get(name) };
  }

  /** Yields all versions with sockets of their own. */
  *versions(): Generator<PrimaryListener> {
    yield* this.active.values();
    for (const { newVersion } of this.warming.values()) if (newVersion !== undefined) yield newVersion;
  }
}

/** Returns the latest configuration, in use or not; undefined without a listener. */
export function latestOf({ active, warming }: ListenerStages): ListenerSpec | undefined {
  return (warming ?? active)?.spec;
}

/** Returns the versions with sockets of their own. */
export function versionsOf({ active, warming }: ListenerStages): PrimaryListener[] {
  return [active, warming?.newVersion].filter((version) => version !== undefined);
}
