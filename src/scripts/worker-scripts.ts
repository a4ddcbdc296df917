// All modules on a worker. They follow what the primary publishes.

import { withinMs } from '../common/time/within-ms.js';
import { getLogger } from '../log/logger.js';
import { OccasionalLog } from '../log/occasional-log.js';
import type { PublishedScript, PublishedScripts, ScriptReport } from './published.js';
import { WorkerScript } from './worker-script.js';

const logger = getLogger('filter');

/** Lines in a row about exceptions outside of hooks. */
const MAX_UNCAUGHT = 20;

/** Longer is a top level that does not end, although it did when the primary read the module. The worker must serve without it. */
const MAX_LOAD_MS = 15_000;

/** The worker's end of the port. */
export interface ScriptsPort {
  readonly state: unknown;
  onState: ((state: unknown) => void) | undefined;
  send(message: unknown): void;
}

export class WorkerScripts {
  /** Pending while the versions with which the worker starts are evaluated; undefined: there are none. Does not reject. */
  readonly loading: Promise<void> | undefined;
  readonly #port: ScriptsPort;
  readonly #maxLoadMs: number;
  readonly #scripts = new Map<string, WorkerScript>();
  readonly #uncaught = new OccasionalLog((text) => logger.error(text), MAX_UNCAUGHT);

  constructor(port: ScriptsPort, maxLoadMs = MAX_LOAD_MS) {
    this.#port = port;
    this.#maxLoadMs = maxLoadMs;
    port.onState = (state) => void this.#load(state as PublishedScripts);
    if (port.state !== undefined) this.loading = this.#load(port.state as PublishedScripts);
  }

  /** Returns the module of that name. The primary has checked that it is registered. */
  module(name: string): WorkerScript {
    let script = this.#scripts.get(name);
    if (script === undefined) {
      script = new WorkerScript(name);
      this.#scripts.set(name, script);
    }
    return script;
  }

  /**
   * Reports an exception that no hook has thrown, such as in a timer of Node. Returns false if it does not come from a module:
   * then nothing is reported.
   */
  claims(thrown: unknown): boolean {
    for (const script of this.#scripts.values()) {
      if (!script.isIn(thrown)) continue;
      this.#uncaught.log(`the script '${script.name}' failed outside of a hook: ${script.errorText(thrown)}`);
      this.#report({ kind: 'uncaught', name: script.name });
      return true;
    }
    return false;
  }

  #report(report: ScriptReport): void {
    this.#port.send(report);
  }

  async #load(published: PublishedScripts): Promise<void> {
    await Promise.all(published.map((script) => this.#loadOne(script)));
  }

  async #loadOne(published: PublishedScript): Promise<void> {
    const { generation, image } = published;
    const script = this.module(image.name);
    try {
      // A version that loads later serves nevertheless, unless a newer one does.
      await withinMs(
        script.load(published),
        this.#maxLoadMs,
        `its top level has not ended within ${this.#maxLoadMs / 1000} s`,
      );
    } catch (error) {
      const reason = script.errorText(error);
      const rest = script.generation === 0 ? '' : `; version ${script.generation} serves`;
      logger.error(
        `the script '${image.name}', version ${generation}, cannot be used on this worker: ${reason}${rest}`,
      );
      this.#report({ kind: 'unusable', name: image.name });
    }
  }
}
