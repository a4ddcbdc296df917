// LDS listeners that cannot be bound for now, because a parent or child process may still have their addresses. They are retried.

import { messageOf } from '../../common/errors/errors.js';
import { isDescriptorShortage } from '../../common/errors/shortages.js';
import { forEachGuarded } from '../../log/internal-errors.js';
import { ListenError } from './version/listen-sockets.js';
import type { ListenerSpec } from './version/primary-listener.js';

/** Why a listener cannot be bound for now. */
export interface Shortage {
  readonly until: string;
  /** Delay of the retry. */
  readonly retryMs: number;
}

export const ADDRESS_IN_USE: Shortage = { until: 'the address is free', retryMs: 500 };
/** A longer delay, since workers log every attempt. */
const FEW_DESCRIPTORS: Shortage = { until: 'there are descriptors', retryMs: 5000 };

export class UnboundListeners {
  readonly #plan: (spec: ListenerSpec) => (() => void) | undefined;
  readonly #waiting = new Map<string, { readonly spec: ListenerSpec; readonly shortage: Shortage }>();
  #retry: NodeJS.Timeout | undefined;

  /** `plan` returns a function that applies the listener; undefined when it still cannot be bound. */
  constructor(plan: (spec: ListenerSpec) => (() => void) | undefined) {
    this.#plan = plan;
  }

  get names(): Iterable<string> {
    return this.#waiting.keys();
  }

  has(name: string): boolean {
    return this.#waiting.has(name);
  }

  add(spec: ListenerSpec, shortage: Shortage): void {
    this.#waiting.set(spec.name, { spec, shortage });
    this.#scheduleRetry();
  }

  /** Called when the listener was applied, or is no longer configured. */
  delete(name: string): void {
    this.#waiting.delete(name);
  }

  retryNow(): void {
    clearTimeout(this.#retry);
    forEachGuarded([...this.#waiting], 'internal error: a listener could not be retried', ([name, { spec }]) => {
      const apply = this.#plan(spec);
      if (apply === undefined) return;
      this.#waiting.delete(name);
      apply();
    });
    if (this.#waiting.size > 0) this.#scheduleRetry();
  }

  /** Stops all retries. */
  close(): void {
    clearTimeout(this.#retry);
    this.#waiting.clear();
  }

  #scheduleRetry(): void {
    clearTimeout(this.#retry);
    const delays = [...this.#waiting.values()].map(({ shortage }) => shortage.retryMs);
    this.#retry = setTimeout(() => this.retryNow(), Math.min(...delays));
  }
}

/** Returns the shortage behind an error, after which a retry may succeed; undefined for a permanent error. */
export function shortageIn(error: unknown): Shortage | undefined {
  if (error instanceof ListenError && error.isInUse) return ADDRESS_IN_USE;
  return isDescriptorShortage(error) ? FEW_DESCRIPTORS : undefined;
}

/** Returns the text of a refusal, which mentions that the listener may still come into use. */
export function refusalText(error: unknown): string {
  const shortage = shortageIn(error);
  return messageOf(error) + (shortage === undefined ? '' : `; the listener is used as soon as ${shortage.until}`);
}
