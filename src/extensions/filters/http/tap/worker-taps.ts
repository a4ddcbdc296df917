// The taps of one worker: by config_id the place in which its filters find the tap that is attached to them.

import type { WorkerContext, WorkerPort } from '../../../sdk.js';
import { ActiveTap } from './active-tap.js';
import { type SentTrace, TAP, type TapSession } from './session.js';
import { TraceBudget } from './traces/trace-budget.js';

/** What filters with one config_id look at for each request. */
export interface TapPlace {
  active: ActiveTap | undefined;
}

export class WorkerTaps {
  readonly #port: WorkerPort;
  readonly #places = new Map<string, TapPlace>();
  #tap: ActiveTap | undefined;
  #configId: string | undefined;

  /** Those of the worker that the context belongs to: there is one object for all its filters. */
  static of(context: WorkerContext): WorkerTaps {
    const port = context.port(TAP);
    let taps = known.get(port);
    if (taps === undefined) {
      taps = new WorkerTaps(port);
      known.set(port, taps);
    }
    return taps;
  }

  private constructor(port: WorkerPort) {
    this.#port = port;
    port.onState = (state) => this.#changed(state as TapSession | undefined);
    this.#changed(port.state as TapSession | undefined);
  }

  place(configId: string): TapPlace {
    let place = this.#places.get(configId);
    if (place === undefined) {
      place = { active: configId === this.#configId ? this.#tap : undefined };
      this.#places.set(configId, place);
    }
    return place;
  }

  #changed(session: TapSession | undefined): void {
    if (this.#tap !== undefined) this.#tap.isOver = true;
    this.#tap = session && this.#open(session);
    this.#configId = session?.configId;
    for (const [configId, place] of this.#places) place.active = configId === this.#configId ? this.#tap : undefined;
  }

  #open({ id, config, budget }: TapSession): ActiveTap {
    const shared = new TraceBudget(budget);
    return new ActiveTap(config, (bytes) => {
      if (!shared.tryTake(this.#port.worker, bytes.length)) return false;
      const trace: SentTrace = { session: id, bytes };
      this.#port.send(trace, [bytes.buffer]);
      return true;
    });
  }
}

const known = new WeakMap<WorkerPort, WorkerTaps>();
