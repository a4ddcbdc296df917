// Failures of the hooks of one module: counted, and logged with the place in the user's file.

import { getLogger, type HeaderView, OccasionalLog, shownName, type WorkerScript } from '../sdk.js';
import { keyOf } from './header-keys.js';

const logger = getLogger('filter');

const REQUEST_ID = keyOf('x-request-id');

/** Lines in a row; a hook that always fails must not fill the disk. */
const BURST = 20;

/** Where a failure has happened, as far as it is known. */
export interface FaultPlace {
  /** The function that has failed: its position is logged if the exception has none. */
  readonly hook?: unknown;
  /** The request's x-request-id. A client may have sent it. */
  readonly requestId?: string | undefined;
  /** The connection's number and the client's address. */
  readonly connection?: string | undefined;
}

/** Reports failures of hooks. */
export interface Faults {
  /** Logs what `hook` has thrown. `result`: what follows from it. */
  report(hook: string, thrown: unknown, result: string, place?: FaultPlace): void;
}

/** Returns the x-request-id of a request; undefined if it has none. */
export function requestIdOf(head: Pick<HeaderView, 'get'> | undefined): string | undefined {
  return head?.get(REQUEST_ID);
}

export class ScriptFaults implements Faults {
  readonly #script: WorkerScript;
  readonly #log = new OccasionalLog((text) => logger.error(text), BURST);

  constructor(script: WorkerScript) {
    this.#script = script;
  }

  report(
    hook: string,
    thrown: unknown,
    result: string,
    { connection, hook: failed, requestId }: FaultPlace = {},
  ): void {
    const text = this.#script.errorText(thrown, failed);
    const id = requestId === undefined ? connection : `x-request-id ${shownName(requestId)}`;
    this.#log.log(
      `the script '${this.#script.name}' failed in ${hook}: ${text}; ${result}${id === undefined ? '' : ` (${id})`}`,
    );
  }
}
