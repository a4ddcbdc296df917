// Failures of the hooks of one module: counted, and logged with the place in the user's file.

import { getLogger, OccasionalLog, type WorkerScript } from '../sdk.js';

const logger = getLogger('filter');

/** Lines in a row; a hook that always fails must not fill the disk. */
const BURST = 20;

/** Reports failures of hooks. */
export interface Faults {
  /** Logs what `hook` has thrown. `result`: what follows from it. */
  report(hook: string, thrown: unknown, result: string): void;
}

export class ScriptFaults implements Faults {
  readonly #script: WorkerScript;
  readonly #log = new OccasionalLog((text) => logger.error(text), BURST);

  constructor(script: WorkerScript) {
    this.#script = script;
  }

  report(hook: string, thrown: unknown, result: string): void {
    this.#log.log(`the script '${this.#script.name}' failed in ${hook}: ${this.#script.errorText(thrown)}; ${result}`);
  }
}
