// The messages between the primary and the workers about modules: plain data.

import type { ScriptImage } from './image.js';

/** The name of the port between them. */
export const SCRIPTS_PORT = 'scripts';

/** The state that the primary publishes: all modules. */
export type PublishedScripts = readonly PublishedScript[];

export interface PublishedScript {
  /** Grows with each version of the module, from 1. */
  readonly generation: number;
  readonly image: ScriptImage;
}

/** From a worker: it cannot use a version that the primary has checked, or a module has thrown outside of a hook. */
export interface ScriptReport {
  readonly kind: 'unusable' | 'uncaught';
  readonly name: string;
}
