// The taps of one worker. Filters find the attached tap in a slot for their config_id.

import type { WorkerContext, WorkerPort } from '../../../sdk.js';
import { ActiveTap } from './active-tap.js';
import { type SentTrace, TAP, type TapSession } from './session.js';
import { TraceBudget } from './traces/trace-budget.js';

/** The slot that filters with one config_id read for each request. */
export interface TapSlot {
  active: ActiveTap | undefined;
}

export class WorkerTaps {
  readonly #port: WorkerPort;
  readonly #slots = new Map<string, TapSlot>();
  #tap: ActiveTap | undefined;
  #configId: string | undefined;

  /** Returns the object of the context's worker, which all its filters share. */
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

  slot(configId: string): TapSlot {
    let slot = this.#slots.get(configId);
    if (slot === undefined) {
      slot = { active: configId === this.#configId ? this.#tap : undefined };
      this.#slots.set(configId, slot);
    }
    return slot;
  }

  #changed(session: TapSession | undefined): void {
    if (this.#tap !== undefined) this.#tap.isOver = true;
    this.#tap = session && this.#open(session);
    this.#configId = session?.configId;
    for (const [configId, slot] of this.#slots) slot.active = configId === this.#configId ? this.#tap : undefined;
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
